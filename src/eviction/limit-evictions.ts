import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import type { AcceptedEvictions } from "./accepted-evictions.ts";
import type { ChangeReports } from "./change-reports.ts";
import { plainAmount } from "./plain-amounts.ts";
import type { Evictor } from "./evictor.ts";
import { immediateGraceSeconds } from "./evicted.ts";
import type { FileSystems } from "./file-systems.ts";
import type { PodUsage, PodUsageReader } from "./pod-usage.ts";
import { hasStorageLimit, passedLimit, type PassedLimit } from "./storage-limits.ts";

export interface LimitEvictionsDependencies {
  readonly usage: Pick<PodUsageReader, "readStorage">;
  readonly evictor: Evictor;
  readonly accepted: Pick<AcceptedEvictions, "changeOfLimits">;
  readonly reports: Pick<ChangeReports, "tell">;
}

/** Enforces the storage limits of pods (upstream's localStorageEviction). */
export class LimitEvictions {
  readonly #deps: LimitEvictionsDependencies;

  constructor(deps: LimitEvictionsDependencies) {
    this.#deps = deps;
  }

  /** Evicts every pod that exceeds a limit of its own. @returns whether there was one */
  async enforce(fileSystemsNow: () => Promise<FileSystems | undefined>, signal: AbortSignal): Promise<boolean> {
    const { usage, evictor } = this.#deps;
    const limited = evictor.candidates().filter(hasStorageLimit);
    if (limited.length === 0) return false;
    const fileSystems = await fileSystemsNow();
    const suspects = offenders(limited, await usage.readStorage(limited, "limits", signal), fileSystems);
    if (suspects.length === 0) return false;
    // Files may have been removed since the last measurement.
    const pods = suspects.map(({ pod }) => pod);
    const found = offenders(pods, await usage.readStorage(pods, "anew", signal), fileSystems);
    let hasEvicted = false;
    for (const { pod, passed } of found) {
      if (evictor.isCandidate(pod) && this.#evict(pod, passed)) hasEvicted = true;
    }
    return hasEvicted;
  }

  /** @returns false if the eviction waits for a confirmation */
  #evict(pod: Pod, { signal, message, used, limit }: PassedLimit): boolean {
    const { evictor, accepted, reports } = this.#deps;
    const text = (bytes: number): string => plainAmount("ephemeral-storage", BigInt(bytes));
    const explanation = `evicted for exceeding its own limit: it uses ${text(used)} of ${text(limit)}`;
    const because: Cause = { code: "StorageLimitPassed", message: `the pod exceeds ${signal}` };
    const change = accepted.changeOfLimits;
    if (change !== undefined && reports.tell([pod], { signal, change, cause: because })) return false;
    evictor.evict(pod, {
      signal,
      message,
      explanation,
      graceSeconds: immediateGraceSeconds,
      disruption: false,
      because,
      data: { used, limit },
    });
    return true;
  }
}

function offenders(
  pods: readonly Pod[],
  usages: ReadonlyMap<string, PodUsage>,
  fileSystems: FileSystems | undefined,
): { readonly pod: Pod; readonly passed: PassedLimit }[] {
  return pods.flatMap((pod) => {
    const usage = usages.get(pod.metadata.uid);
    const passed = usage && passedLimit(pod, usage, fileSystems);
    return passed === undefined ? [] : [{ pod, passed }];
  });
}
