import { type Quantity, quantityOf } from "./quantity.ts";

/** An amount, or a fraction of the capacity. */
export type ThresholdValue = { readonly amount: Quantity } | { readonly part: number };

/** A threshold's amount at this capacity. Percentages are 32-bit floats, as upstream. */
export function thresholdAmount(value: ThresholdValue, capacity: bigint): bigint {
  return thresholdQuantity(value, capacity).value();
}

/** As a quantity: an amount in the configuration's notation, a fraction in bytes. */
export function thresholdQuantity(value: ThresholdValue, capacity: bigint): Quantity {
  if ("amount" in value) return value.amount;
  return quantityOf(BigInt(Math.trunc(Number(capacity) * value.part)), "BinarySI");
}

/** In the configuration's notation: `10%`, `100Mi`. */
export function thresholdText(value: ThresholdValue): string {
  return "amount" in value ? value.amount.toString() : `${Number((value.part * 100).toFixed(3))}%`;
}
