/** An amount, or a part of all there is. */
export type ThresholdValue = { readonly amount: bigint } | { readonly part: number };

/** What a threshold is where so much is there in all. As upstream: percentages are numbers of 32 bits. */
export function thresholdAmount(value: ThresholdValue, capacity: bigint): bigint {
  return "amount" in value ? value.amount : BigInt(Math.trunc(Number(capacity) * value.part));
}

/** A threshold as a configuration has it: `10%`, `100Mi` as bytes. */
export function thresholdText(value: ThresholdValue): string {
  return "amount" in value ? String(value.amount) : `${Number((value.part * 100).toFixed(3))}%`;
}
