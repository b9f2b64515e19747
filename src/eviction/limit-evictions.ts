import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { AcceptedEvictions } from "./accepted-evictions.ts";
import type { ChangeReports } from "./change-reports.ts";
import { plainAmount } from "./plain-amounts.ts";
import type { Evictor } from "./evictor.ts";
import { immediateGraceSeconds } from "./evicted.ts";
import type { FileSystems } from "./file-systems.ts";
import { type PodUsage, type PodUsageReader, withoutVolumes } from "./pod-usage.ts";
import { hasStorageLimit, passedLimit, type PassedLimit } from "./storage-limits.ts";

export interface LimitEvictionsDependencies {
  readonly clock: Clock;
  readonly usage: Pick<PodUsageReader, "readStorage">;
  readonly evictor: Evictor;
  readonly accepted: Pick<AcceptedEvictions, "changeOfLimits">;
  readonly reports: Pick<ChangeReports, "tell">;
}

/**
 * How old figures of volumes may be at an eviction: a walk that takes long ends after the request for it. Those of one
 * that has just ended are taken by the next check, however long it took.
 */
const oldestMs = 60_000;

/** Enforces the storage limits of pods (upstream's localStorageEviction). */
export class LimitEvictions {
  readonly #deps: LimitEvictionsDependencies;

  constructor(deps: LimitEvictionsDependencies) {
    this.#deps = deps;
  }

  /** Evicts every pod that exceeds a limit of its own. @returns whether there was one */
  async enforce(fileSystemsNow: () => Promise<FileSystems | undefined>, signal: AbortSignal): Promise<boolean> {
    const { clock, usage, evictor } = this.#deps;
    const limited = evictor.candidates().filter(hasStorageLimit);
    if (limited.length === 0) return false;
    const fileSystems = await fileSystemsNow();
    const suspects = offenders(limited, await usage.readStorage(limited, "limits", signal), fileSystems);
    if (suspects.length === 0) return false;
    // Files may have been removed since the last measurement.
    const pods = suspects.map(({ pod }) => pod);
    const beganMs = clock.monotonic();
    const usages = [...(await usage.readStorage(pods, "anew", signal))].map(([uid, own]) => {
      const isOld = beganMs - (own.volumesMs ?? beganMs) > oldestMs;
      return [uid, isOld ? withoutVolumes(own) : own] as const;
    });
    const found = offenders(pods, new Map(usages), fileSystems);
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
