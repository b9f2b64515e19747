/** The host of a URL as sockets and certificates have it: an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/u, "$1");
}

/** The host's server name for TLS; undefined for an IP address (RFC 6066, 3). */
export function serverNameOf(host: string): string | undefined {
  return /^[\d.]+$|:/u.test(host) ? undefined : host;
}
