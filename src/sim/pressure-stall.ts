import type { PressureStall } from "../ports/pressure-stall.ts";
import type { SimClock } from "./clock.ts";

/** All work on a busy machine stalls, judged at each read. */
export function simPressureStall(clock: SimClock, isBusy: () => boolean): PressureStall {
  let [stalledMs, lookedMs] = [0, clock.nowMs];
  return {
    stalledMs: async () => {
      if (isBusy()) stalledMs += clock.nowMs - lookedMs;
      lookedMs = clock.nowMs;
      return stalledMs;
    },
  };
}
