import { thresholdAmount, thresholdText } from "../resources/threshold-value.ts";
import { amountText, type Observations } from "./pressure.ts";
import { resourceOf, type StarvedResource, type Threshold } from "./thresholds.ts";

const units = ["", "Ki", "Mi", "Gi", "Ti"];

/**
 * An amount for podwright's own texts: bytes in the largest binary unit with at most one decimal, so that different
 * amounts can be compared at a glance. Upstream's messages have exact ones (`amountText`). Pure.
 */
export function plainAmount(resource: StarvedResource, amount: bigint): string {
  if (resource !== "memory" && resource !== "ephemeral-storage") return amount.toString();
  let value = Number(amount);
  let power = 0;
  // Rounded first: what rounds to 1024Ki is 1Mi.
  for (; Math.abs(rounded(value)) >= 1024 && power < units.length - 1; power++) value /= 1024;
  return `${rounded(value)}${units[power]}`;
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

/** `100Mi`, `95.4Mi (100M)`, `100 (10% of 1000)`. Pure. */
export function limitText({ signal, value }: Threshold, capacity: bigint): string {
  const resource = resourceOf(signal);
  const plain = plainAmount(resource, thresholdAmount(value, capacity));
  const written = thresholdText(value);
  if ("part" in value) return `${plain} (${written} of ${plainAmount(resource, capacity)})`;
  return plain === written ? plain : `${plain} (${written})`;
}

/** `nodefs.available 99 is below 100 (10% of 1000)`. Pure. */
export function metText(threshold: Threshold, observations: Observations): string {
  const { signal, value } = threshold;
  const { available = 0n, capacity = 0n } = observations.get(signal) ?? {};
  const resource = resourceOf(signal);
  const plain = plainAmount(resource, available);
  const isClose = plain === plainAmount(resource, thresholdAmount(value, capacity));
  return `${signal} ${isClose ? amountText(resource, available) : plain} is below ${limitText(threshold, capacity)}`;
}
