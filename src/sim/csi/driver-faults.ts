import type { RpcCode } from "../../ports/rpc.ts";
import type { SimRandom } from "../random.ts";

/** The faults of a driver, as probabilities per call. */
export interface DriverFaults {
  /** Fails definitely, without doing anything. */
  readonly refuses: number;
  /** Reports an unknown outcome, without doing anything. */
  readonly doubts: number;
  /** Reports an unknown outcome after success, or a definite failure after a publish. */
  readonly lies: number;
  /** Does not respond; the call is carried out late, or never. */
  readonly hangs: number;
  /** Carries out everything twice. */
  readonly repeats: number;
  /** Maximum duration of a call, ms. */
  readonly longestMs: number;
}

export const soundDriver: DriverFaults = { refuses: 0, doubts: 0, lies: 0, hangs: 0, repeats: 0, longestMs: 200 };

/** The permanent faults of a driver; half of them have none. */
export function drawUsualFaults(random: SimRandom): DriverFaults {
  if (random.chance(0.5)) return soundDriver;
  const upTo = (most: number): number => random.uniform() * most;
  const longestMs = random.pick([soundDriver.longestMs, soundDriver.longestMs, 5000]);
  return { refuses: upTo(0.1), doubts: upTo(0.2), lies: upTo(0.3), hangs: upTo(0.05), repeats: upTo(0.2), longestMs };
}

/** The outcome of a call. */
export type Fate = "done" | "refused" | "doubted" | "lied" | "late" | "never" | "twice";

export function drawFate(random: SimRandom, { refuses, doubts, lies, hangs, repeats }: DriverFaults): Fate {
  if (random.chance(refuses)) return "refused";
  if (random.chance(doubts)) return "doubted";
  if (random.chance(lies)) return "lied";
  if (random.chance(hangs)) return random.pick(["late", "never"]);
  return random.chance(repeats) ? "twice" : "done";
}

/** Codes for calls that definitely had no effect, and codes for unknown outcomes. */
export const finalCodes: readonly [RpcCode, ...RpcCode[]] = ["Internal", "Unknown", "InvalidArgument", "NotFound"];
export const uncertainCodes: readonly [RpcCode, ...RpcCode[]] = [
  ...(["DeadlineExceeded", "Unavailable", "Aborted"] as const),
  "ResourceExhausted",
];
