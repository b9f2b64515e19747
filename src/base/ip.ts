/**
 * An IPv6 address in RFC 5952 form, so that equal addresses have equal texts, and the IPv4 address in one that contains it,
 * as Go shows it; other text unchanged. Pure.
 */
export function canonicalIp(address: string): string {
  if (!isV6(address)) return address;
  const text = URL.parse(`http://[${address}]`)?.hostname.slice(1, -1) ?? address;
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/u.exec(text) ?? [];
  if (high === undefined || low === undefined) return text;
  const bytes = [high, low].map((part) => Number.parseInt(part, 16)).flatMap((part) => [part >> 8, part & 0xff]);
  return bytes.join(".");
}

export function isV6(address: string): boolean {
  return address.includes(":");
}

/**
 * What a pod's status and variables show of its addresses: the first of the node's primary family, then the first of the
 * other; the API allows no more. Pure.
 * @param primary an address of the node's primary family; undefined: IPv4
 */
export function onePerFamily(addresses: readonly string[], primary: string | undefined): readonly string[] {
  const v6First = primary !== undefined && isV6(primary);
  const found = [v6First, !v6First].map((v6) => addresses.find((address) => isV6(address) === v6));
  return found.filter((address) => address !== undefined).map(canonicalIp);
}
