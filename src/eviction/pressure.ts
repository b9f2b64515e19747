import { thresholdAmount } from "../resources/threshold-value.ts";
import { quantityOf } from "../resources/quantity.ts";
import { isOfDisk, needsLayout } from "./file-systems.ts";
import { resourceOf, type Signal, type StarvedResource, type Threshold } from "./thresholds.ts";

/** Node conditions that keep pods away. */
export const pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"] as const;
export type Pressure = (typeof pressures)[number];

/** Capacity and available amount of a resource. */
export interface Observation {
  readonly available: bigint;
  readonly capacity: bigint;
}

/** Unobservable signals are missing. */
export type Observations = ReadonlyMap<Signal, Observation>;

/** State between observations; times are monotonic ms. */
export interface PressureState {
  /** Met thresholds, and those that were met when they were last observed; since when. */
  readonly metSince: ReadonlyMap<Threshold, number>;
  /** Those whose grace period has passed. */
  readonly due: ReadonlySet<Threshold>;
  /** When a met threshold last required each condition. */
  readonly lastSeen: ReadonlyMap<Pressure, number>;
}

export const noPressure: PressureState = { metSince: new Map(), due: new Set(), lastSeen: new Map() };

export interface PressureLook {
  readonly state: PressureState;
  /** Conditions that hold, in the order of {@link pressures}. */
  readonly pressures: readonly Pressure[];
  /** Thresholds that are met now. */
  readonly met: readonly Threshold[];
  /** Those that cause evictions. */
  readonly due: readonly Threshold[];
}

/**
 * Judges an observation as upstream's eviction manager does. A condition holds as soon as a threshold is met, even a
 * soft one, and for the transition period after. Pods are evicted for a threshold whose grace period has passed; it
 * then stays met until its minimum reclaim is available as well. Where nothing is observed, nobody is evicted, and what
 * was met stays so: a disk that stops answering has not been freed. Pure.
 */
export function lookAtPressure(
  before: PressureState,
  observations: Observations,
  config: { readonly thresholds: readonly Threshold[]; readonly transitionMs: number },
  nowMs: number,
): PressureLook {
  const met = config.thresholds.filter((threshold) => isMet(threshold, observations, before.due.has(threshold)));
  const isUnseen = (threshold: Threshold): boolean =>
    before.metSince.has(threshold) && !observations.has(threshold.signal);
  const held = [...met, ...config.thresholds.filter(isUnseen)];
  const metSince = new Map(held.map((threshold) => [threshold, before.metSince.get(threshold) ?? nowMs] as const));
  const due = met.filter((threshold) => nowMs - (metSince.get(threshold) ?? nowMs) >= threshold.graceMs);
  const called = new Set(held.map(({ signal }) => pressureOf(signal)));
  const lastSeen = new Map([...before.lastSeen, ...[...called].map((pressure) => [pressure, nowMs] as const)]);
  const holds = (pressure: Pressure): boolean => {
    const seen = lastSeen.get(pressure);
    return called.has(pressure) || (seen !== undefined && nowMs - seen < config.transitionMs);
  };
  const wereDue = held.filter((threshold) => isUnseen(threshold) && before.due.has(threshold));
  const state = { metSince, due: new Set([...due, ...wereDue]), lastSeen };
  return { state, pressures: pressures.filter(holds), met, due };
}

/** For evictions for something else than a disk. Pure. */
export function withoutDisks(look: PressureLook): PressureLook {
  return { ...look, due: look.due.filter(({ signal }) => !isOfDisk(signal)) };
}

/** While it is not known what else is on the disks of images and layers. Pure. */
export function withoutLayout(look: PressureLook): PressureLook {
  return { ...look, due: look.due.filter(({ signal }) => !needsLayout(signal)) };
}

/** @param withReclaim adds the minimum reclaim, after evictions for this threshold */
export function isMet({ signal, value, minReclaim }: Threshold, seen: Observations, withReclaim: boolean): boolean {
  const observation = seen.get(signal);
  if (observation === undefined) return false;
  const { available, capacity } = observation;
  const more = withReclaim && minReclaim !== undefined ? thresholdAmount(minReclaim, capacity) : 0n;
  return available < thresholdAmount(value, capacity) + more;
}

const conditionOf: Readonly<Record<StarvedResource, Pressure>> = {
  memory: "MemoryPressure",
  "ephemeral-storage": "DiskPressure",
  inodes: "DiskPressure",
  pids: "PIDPressure",
};

function pressureOf(signal: Signal): Pressure {
  return conditionOf[resourceOf(signal)];
}

/** An amount in upstream's format: bytes in binary units, counts in decimal ones. */
export function amountText(resource: StarvedResource, amount: bigint): string {
  return quantityOf(
    amount,
    resource === "memory" || resource === "ephemeral-storage" ? "BinarySI" : "DecimalSI",
  ).toString();
}
