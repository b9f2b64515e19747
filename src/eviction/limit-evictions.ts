import type { Pod } from "../api/pod.ts";
import { amountText } from "./pressure.ts";
import type { Evictor } from "./evictor.ts";
import { immediateGraceSeconds } from "./evicted.ts";
import type { FileSystems } from "./file-systems.ts";
import type { PodUsage, PodUsageReader } from "./pod-usage.ts";
import { hasStorageLimit, passedLimit, type PassedLimit } from "./storage-limits.ts";

/** Enforces the storage limits of pods (upstream's localStorageEviction). */
export class LimitEvictions {
  readonly #usage: PodUsageReader;
  readonly #evictor: Evictor;

  constructor(usage: PodUsageReader, evictor: Evictor) {
    this.#usage = usage;
    this.#evictor = evictor;
  }

  /** Evicts every pod that exceeds a limit of its own. @returns whether there was one */
  async enforce(fileSystemsNow: () => Promise<FileSystems>, signal: AbortSignal): Promise<boolean> {
    const limited = this.#evictor.candidates().filter(hasStorageLimit);
    if (limited.length === 0) return false;
    const fileSystems = await fileSystemsNow();
    const suspects = offenders(limited, await this.#usage.readStorage(limited, "limits", signal), fileSystems);
    if (suspects.length === 0) return false;
    // Files may have been removed since the last measurement.
    const pods = suspects.map(({ pod }) => pod);
    const found = offenders(pods, await this.#usage.readStorage(pods, "anew", signal), fileSystems);
    for (const { pod, passed } of found) if (this.#evictor.isCandidate(pod)) this.#evict(pod, passed);
    return found.length > 0;
  }

  #evict(pod: Pod, { signal, message, used, limit }: PassedLimit): void {
    const text = (bytes: number): string => amountText("ephemeral-storage", BigInt(bytes));
    const explanation = `evicted for exceeding its own limit: it uses ${text(used)} of ${text(limit)}`;
    this.#evictor.evict(pod, {
      signal,
      message,
      explanation,
      graceSeconds: immediateGraceSeconds,
      disruption: false,
      because: { code: "StorageLimitPassed", message: `the pod exceeds ${signal}` },
      data: { used, limit },
    });
  }
}

function offenders(
  pods: readonly Pod[],
  usages: ReadonlyMap<string, PodUsage>,
  fileSystems: FileSystems,
): { readonly pod: Pod; readonly passed: PassedLimit }[] {
  return pods.flatMap((pod) => {
    const usage = usages.get(pod.metadata.uid);
    const passed = usage && passedLimit(pod, usage, fileSystems);
    return passed === undefined ? [] : [{ pod, passed }];
  });
}
