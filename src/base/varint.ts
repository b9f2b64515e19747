/** An integer in groups of seven bits, lowest first: protobuf's varint and HPACK's integer (RFC 7541 §5.1). */
export function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return [...bytes, rest];
}
