import { setTimeout as sleep } from "node:timers/promises";
import type { Usage } from "./usage.ts";

/** What a process takes while nothing happens. */
export interface Rest {
  /** Of one core. */
  readonly cpuPercent: number;
  readonly rssMiB: number;
}

/** What a process takes of one core from now on, for so many ms, and what is resident at the end. */
export async function restFor(restMs: number, usage: () => Promise<Usage>): Promise<Rest> {
  const [before, began] = [await usage(), performance.now()];
  await sleep(restMs);
  const after = await usage();
  return { cpuPercent: ((after.cpuMs - before.cpuMs) / (performance.now() - began)) * 100, rssMiB: after.rssMiB };
}

export interface RestFigures {
  readonly pods: number;
  /** Containers beside them that have ended, of pods that are not the kubelet's. */
  readonly dead: number;
  readonly floor: Rest;
  readonly kubelet: Rest;
}

export function restName({ pods, dead }: Pick<RestFigures, "pods" | "dead">): string {
  return `at rest, ${pods} pods${dead > 0 ? ` beside ${dead} dead containers` : ""}`;
}
