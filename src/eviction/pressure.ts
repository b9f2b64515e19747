import { thresholdAmount } from "../resources/threshold-value.ts";
import type { Signal, Threshold } from "./thresholds.ts";

/** Conditions of a Node that keep pods away. */
export const pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"] as const;
export type Pressure = (typeof pressures)[number];

/** How much of something there is, and how much of it is left. */
export interface Observation {
  readonly available: bigint;
  readonly capacity: bigint;
}

/** What was seen; what could not be seen is missing. */
export type Observations = ReadonlyMap<Signal, Observation>;

/** What is remembered from one look to the next; times are monotonic ms. */
export interface PressureState {
  /** Thresholds that are missed, and since when. */
  readonly missedSince: ReadonlyMap<Threshold, number>;
  /** When each condition was last called for. */
  readonly lastSeen: ReadonlyMap<Pressure, number>;
}

export const noPressure: PressureState = { missedSince: new Map(), lastSeen: new Map() };

export interface PressureLook {
  readonly state: PressureState;
  /** Conditions that hold, in the order of {@link pressures}. */
  readonly pressures: readonly Pressure[];
  /** Thresholds that are missed at this moment. */
  readonly missed: readonly Threshold[];
}

/**
 * What a look at the machine says of its pressure, as upstream's eviction manager decides: a condition holds as soon as a
 * threshold is missed, a soft one too, and for the transition period after. A threshold whose grace is over is missed until
 * its minimum reclaim is free besides. Pure.
 */
export function lookAtPressure(
  before: PressureState,
  observations: Observations,
  config: { readonly thresholds: readonly Threshold[]; readonly transitionMs: number },
  nowMs: number,
): PressureLook {
  const missed = config.thresholds.filter((threshold) => {
    const since = before.missedSince.get(threshold);
    const isOver = since !== undefined && nowMs - since >= threshold.graceMs;
    return isMissed(threshold, observations.get(threshold.signal), isOver);
  });
  const called = new Set(missed.map(({ signal }) => pressureOf(signal)));
  const lastSeen = new Map([...before.lastSeen, ...[...called].map((pressure) => [pressure, nowMs] as const)]);
  const holds = (pressure: Pressure): boolean => {
    const seen = lastSeen.get(pressure);
    return called.has(pressure) || (seen !== undefined && nowMs - seen < config.transitionMs);
  };
  const missedSince = new Map(
    missed.map((threshold) => [threshold, before.missedSince.get(threshold) ?? nowMs] as const),
  );
  return { state: { missedSince, lastSeen }, pressures: pressures.filter(holds), missed };
}

function isMissed(
  { value, minReclaim }: Threshold,
  observation: Observation | undefined,
  withReclaim: boolean,
): boolean {
  if (observation === undefined) return false;
  const { available, capacity } = observation;
  const more = withReclaim && minReclaim !== undefined ? thresholdAmount(minReclaim, capacity) : 0n;
  return available < thresholdAmount(value, capacity) + more;
}

function pressureOf(signal: Signal): Pressure {
  if (signal === "pid.available") return "PIDPressure";
  return signal.startsWith("memory") || signal.startsWith("allocatable") ? "MemoryPressure" : "DiskPressure";
}
