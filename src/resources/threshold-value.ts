import { type Quantity, quantityOf } from "./quantity.ts";

/** An amount, or a part of all there is. */
export type ThresholdValue = { readonly amount: Quantity } | { readonly part: number };

/** A threshold's amount at this capacity. As upstream: percentages are 32-bit floats. */
export function thresholdAmount(value: ThresholdValue, capacity: bigint): bigint {
  return thresholdQuantity(value, capacity).value();
}

/** The same as it is written: an amount as the configuration has it, a part in bytes. */
export function thresholdQuantity(value: ThresholdValue, capacity: bigint): Quantity {
  if ("amount" in value) return value.amount;
  return quantityOf(BigInt(Math.trunc(Number(capacity) * value.part)), "BinarySI");
}

/** A threshold as a configuration has it: `10%`, `100Mi`. */
export function thresholdText(value: ThresholdValue): string {
  return "amount" in value ? value.amount.toString() : `${Number((value.part * 100).toFixed(3))}%`;
}
