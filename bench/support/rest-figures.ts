import { setTimeout as sleep } from "node:timers/promises";
import type { Usage } from "./usage.ts";

/** A process's cost at rest. */
export interface Rest {
  /** Of one core. */
  readonly cpuPercent: number;
  readonly rssMiB: number;
}

const sampleMs = 1_000;

/** A process's CPU share and mean resident memory over this time: memory rises by up to 10 MiB between two collections. */
export async function restFor(restMs: number, usage: () => Promise<Usage>): Promise<Rest> {
  const [before, began] = [await usage(), performance.now()];
  let [rssMiB, samples] = [0, 0];
  let after = before;
  while (performance.now() - began < restMs) {
    await sleep(sampleMs);
    after = await usage();
    rssMiB += after.rssMiB;
    samples++;
  }
  return { cpuPercent: ((after.cpuMs - before.cpuMs) / (performance.now() - began)) * 100, rssMiB: rssMiB / samples };
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
