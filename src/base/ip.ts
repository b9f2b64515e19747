/** An IPv6 address as RFC 5952 writes it, so that two texts of one address are the same; anything else as it is. Pure. */
export function canonicalIp(address: string): string {
  if (!isV6(address)) return address;
  return URL.parse(`http://[${address}]`)?.hostname.slice(1, -1) ?? address;
}

export function isV6(address: string): boolean {
  return address.includes(":");
}
