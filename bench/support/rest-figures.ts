import { setTimeout as sleep } from "node:timers/promises";
import type { Usage } from "./usage.ts";

/** A process's cost at rest. */
export interface Rest {
  /** Of one core. */
  readonly cpuPercent: number;
  readonly rssMiB: number;
}

/** A process's CPU share over this time, and its resident memory at the end. */
export async function restFor(restMs: number, usage: () => Promise<Usage>): Promise<Rest> {
  const [before, began] = [await usage(), performance.now()];
  await sleep(restMs);
  const after = await usage();
  return { cpuPercent: ((after.cpuMs - before.cpuMs) / (performance.now() - began)) * 100, rssMiB: after.rssMiB };
}

export interface RestFigures {
  readonly pods: number;
  /** Exited containers beside them, of foreign pods. */
  readonly dead: number;
  readonly floor: Rest;
  readonly kubelet: Rest;
}

export function restName({ pods, dead }: Pick<RestFigures, "pods" | "dead">): string {
  return `at rest, ${pods} pods${dead > 0 ? ` beside ${dead} dead containers` : ""}`;
}
