import type { Pod, PodSpec } from "../../src/api/pod.ts";
import { podUid } from "../../src/base/ids.ts";
import type { Observations } from "../../src/eviction/pressure.ts";
import type { Signal, Threshold } from "../../src/eviction/thresholds.ts";
import { parseQuantity } from "../../src/resources/quantity.ts";

/** `thresholdOf("memory.available", "100Mi")`, `thresholdOf("nodefs.available", 0.1, 30_000)`. */
export function thresholdOf(signal: Signal, value: string | number, graceMs = 0): Threshold {
  const parsed = typeof value === "string" ? { amount: parseQuantity(value) } : { part: value };
  return { signal, value: parsed, graceMs, minReclaim: undefined };
}

/** Available amounts of each signal, with capacity `of`. */
export function observed(left: Readonly<Partial<Record<Signal, bigint>>>, of = 1n << 30n): Observations {
  return new Map(Object.entries(left).map(([signal, available]) => [signal as Signal, { available, capacity: of }]));
}

/** A pod with one container `c` and these requests. */
export function podWith(
  name: string,
  requests: Readonly<Record<string, string>> = {},
  spec: Partial<PodSpec> = {},
): Pod {
  const container = { name: "c", image: "busybox", resources: { requests } };
  return {
    metadata: { name, namespace: "default", uid: podUid(`uid-${name}`) },
    spec: { containers: [container], ...spec },
  };
}
