/** The host of a URL as sockets and certificates have it: an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/u, "$1");
}

/** The name to ask a server at that host for by TLS; undefined: an IP address is none (RFC 6066, 3). */
export function serverNameOf(host: string): string | undefined {
  return /^[\d.]+$|:/u.test(host) ? undefined : host;
}
