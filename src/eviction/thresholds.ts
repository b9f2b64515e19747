import { errorMessage } from "../base/errors.ts";
import { parseQuantity, type Quantity } from "../resources/quantity.ts";
import type { ThresholdValue } from "../resources/threshold-value.ts";

/** Eviction signals. `allocatableMemory.available`: within the memory for all pods together. */
export const signals = [
  "memory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "containerfs.available",
  "containerfs.inodesFree",
  "pid.available",
  "allocatableMemory.available",
] as const;

export type Signal = (typeof signals)[number];

/** The resource that is short when a threshold is met. */
export type StarvedResource = "memory" | "ephemeral-storage" | "inodes" | "pids";

/** The resource of a signal, in the words of messages and Events. */
export function resourceOf(signal: Signal): StarvedResource {
  if (signal === "pid.available") return "pids";
  if (signal.endsWith(".inodesFree")) return "inodes";
  return signal === "memory.available" || signal === "allocatableMemory.available" ? "memory" : "ephemeral-storage";
}

/** A minimum available amount. It is met as soon as less is available. */
export interface Threshold {
  readonly signal: Signal;
  readonly value: ThresholdValue;
  /** How long it may be met before pods are evicted; 0: a hard threshold. */
  readonly graceMs: number;
  /** The additional amount that must be available afterwards. */
  readonly minReclaim: ThresholdValue | undefined;
}

type Statements = Readonly<Record<string, string>>;

/** KubeletConfiguration's eviction fields. */
export interface ThresholdStatements {
  readonly hard: Statements;
  readonly soft: Statements;
  readonly softGracePeriods: Statements;
  readonly minimumReclaim: Statements;
  /** Node allocatable is enforced for pods: its memory is observed as well. */
  readonly enforcesAllocatable: boolean;
}

/**
 * Parses the thresholds of a configuration, as upstream's ParseThresholdConfig. Those of containerfs are dropped:
 * nodefs or imagefs thresholds apply to it (`withContainerFs`).
 * @param durationMs parses a Go duration to milliseconds; undefined: invalid
 * @throws Error in upstream's words for the first invalid statement
 */
export function parseThresholds(
  { hard, soft, softGracePeriods, minimumReclaim, enforcesAllocatable }: ThresholdStatements,
  durationMs: (text: string) => number | undefined,
): Threshold[] {
  const graces = new Map(
    Object.entries(softGracePeriods).map(([name, text]) => {
      const graceMs = durationMs(text);
      if (graceMs === undefined) {
        const what = /^[+-]?\d+$/u.test(text) ? "missing unit in" : "invalid";
        throw new Error(`time: ${what} duration ${JSON.stringify(text)}`);
      }
      if (graceMs < 0) throw new Error(`invalid eviction grace period specified: ${text}, must be a positive value`);
      return [signalOf(name), graceMs] as const;
    }),
  );
  const reclaims = new Map(Object.entries(minimumReclaim).map(([name, text]) => [signalOf(name), reclaim(name, text)]));
  const of = (statements: Statements, graceOf: (signal: Signal) => number): Threshold[] =>
    Object.entries(statements).flatMap(([name, text]) => {
      const signal = signalOf(name);
      const value = valueOf(name, text);
      return value === undefined ? [] : [{ signal, value, graceMs: graceOf(signal), minReclaim: reclaims.get(signal) }];
    });
  const graceOf = (signal: Signal): number => {
    const grace = graces.get(signal);
    if (grace !== undefined) return grace;
    throw new Error(`grace period must be specified for the soft eviction threshold ${signal}`);
  };
  const thresholds = [...of(hard, () => 0), ...of(soft, graceOf)].filter(({ signal }) => !isContainerFs(signal));
  const memory = thresholds.filter(({ signal, graceMs }) => signal === "memory.available" && graceMs === 0);
  const ofPods = memory.map((threshold) => ({ ...threshold, signal: "allocatableMemory.available" as const }));
  return enforcesAllocatable ? [...thresholds, ...ofPods] : thresholds;
}

/** The statements about containerfs, which have no effect. */
export function uselessStatements(statements: Pick<ThresholdStatements, "hard" | "soft">): string[] {
  return [...Object.keys(statements.hard), ...Object.keys(statements.soft)].filter((name) =>
    name.startsWith("containerfs."),
  );
}

function isContainerFs(signal: Signal): boolean {
  return signal.startsWith("containerfs.");
}

function signalOf(name: string): Signal {
  const signal = signals.find((each) => each === name);
  if (signal === undefined) throw new Error(`unsupported eviction signal ${name}`);
  return signal;
}

/** Undefined: none, which 0% and 100% mean. */
function valueOf(name: string, text: string): ThresholdValue | undefined {
  if (!text.endsWith("%")) {
    const quantity = quantityOf(name, text);
    if (quantity.nanos > 0n) return { amount: quantity };
    throw new Error(`eviction threshold ${name} must be positive: ${quantity.toString()}`);
  }
  if (text === "0%" || text === "100%") return undefined;
  const part = partOf(text);
  if (part < 0) throw new Error(`eviction percentage threshold ${name} must be >= 0%: ${text}`);
  if (part > 1) throw new Error(`eviction percentage threshold ${name} must be <= 100%: ${text}`);
  return { part };
}

function reclaim(name: string, text: string): ThresholdValue {
  if (text.endsWith("%")) {
    const part = partOf(text);
    if (part > 0) return { part };
    throw new Error(`eviction percentage minimum reclaim ${name} must be positive: ${text}`);
  }
  const quantity = quantityOf(name, text);
  if (quantity.nanos < 0n) throw new Error(`negative eviction minimum reclaim specified for ${name}`);
  return { amount: quantity };
}

function quantityOf(name: string, text: string): Quantity {
  try {
    return parseQuantity(text);
  } catch (error) {
    throw new Error(`${name}: ${errorMessage(error)}`, { cause: error });
  }
}

function partOf(text: string): number {
  const number = text.replace(/%+$/u, "");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/iu.test(number)) {
    throw new Error(`strconv.ParseFloat: parsing ${JSON.stringify(number)}: invalid syntax`);
  }
  return Math.fround(Math.fround(Number(number)) / 100);
}
