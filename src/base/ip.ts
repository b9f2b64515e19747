/** An IPv6 address in RFC 5952 form, so that equal addresses have equal texts; other text unchanged. Pure. */
export function canonicalIp(address: string): string {
  if (!isV6(address)) return address;
  return URL.parse(`http://[${address}]`)?.hostname.slice(1, -1) ?? address;
}

export function isV6(address: string): boolean {
  return address.includes(":");
}
