import type { MachineStalls } from "../ports/machine-stalls.ts";
import type { SimClock } from "./clock.ts";

/** All work of a busy machine waits for it, by what is so whenever somebody looks. */
export function simStalls(clock: SimClock, isBusy: () => boolean): MachineStalls {
  let [stalledMs, lookedMs] = [0, clock.nowMs];
  return {
    stalledMs: async () => {
      if (isBusy()) stalledMs += clock.nowMs - lookedMs;
      lookedMs = clock.nowMs;
      return stalledMs;
    },
  };
}
