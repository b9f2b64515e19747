/** A whole number in groups of seven bits, the lowest first, as protobuf (varint) and HPACK (RFC 7541 §5.1) write it. */
export function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return [...bytes, rest];
}
