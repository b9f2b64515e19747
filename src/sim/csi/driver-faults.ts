import type { RpcCode } from "../../ports/rpc.ts";
import type { SimRandom } from "../random.ts";

/** How a driver answers, as probabilities of each call. */
export interface DriverFaults {
  /** It refuses for sure: nothing was begun. */
  readonly refuses: number;
  /** It answers that the outcome is unknown, and has done nothing. */
  readonly doubts: number;
  /** It answers that the outcome is unknown, and has done it. */
  readonly lies: number;
  /** It does not answer; what it was asked for is done late, or never. */
  readonly hangs: number;
  /** It does everything twice. */
  readonly repeats: number;
  /** The longest time of a call, ms. */
  readonly longestMs: number;
}

export const soundDriver: DriverFaults = { refuses: 0, doubts: 0, lies: 0, hangs: 0, repeats: 0, longestMs: 200 };

/** What is permanently wrong with a driver; with half of them nothing. */
export function drawUsualFaults(random: SimRandom): DriverFaults {
  if (random.chance(0.5)) return soundDriver;
  const upTo = (most: number): number => random.uniform() * most;
  const longestMs = random.pick([soundDriver.longestMs, soundDriver.longestMs, 5000]);
  return { refuses: upTo(0.1), doubts: upTo(0.2), lies: upTo(0.3), hangs: upTo(0.05), repeats: upTo(0.2), longestMs };
}

/** What becomes of one call. */
export type Fate = "done" | "refused" | "doubted" | "lied" | "late" | "never" | "twice";

export function drawFate(random: SimRandom, { refuses, doubts, lies, hangs, repeats }: DriverFaults): Fate {
  if (random.chance(refuses)) return "refused";
  if (random.chance(doubts)) return "doubted";
  if (random.chance(lies)) return "lied";
  if (random.chance(hangs)) return random.pick(["late", "never"]);
  return random.chance(repeats) ? "twice" : "done";
}

/** Codes that say that nothing was done, and those that do not say what was. */
export const finalCodes: readonly [RpcCode, ...RpcCode[]] = ["Internal", "Unknown", "InvalidArgument", "NotFound"];
export const uncertainCodes: readonly [RpcCode, ...RpcCode[]] = [
  ...(["DeadlineExceeded", "Unavailable", "Aborted"] as const),
  "ResourceExhausted",
];
