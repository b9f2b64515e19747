import { isV6 } from "../base/ip.ts";

/** The parsed `--node-ip`. */
export interface NodeIps {
  /** Addresses, at most one of each family; none: detected. */
  readonly given: readonly string[];
  /** `::`: prefers IPv6. */
  readonly prefersV6: boolean;
}

/** The machine's network, for address detection. */
export interface HostNetwork {
  /** In the machine's order, without link-local and loopback addresses. */
  readonly interfaces: readonly { readonly name: string; readonly addresses: readonly string[] }[];
  /** Names of interfaces with a default route, in the kernel's order. */
  readonly defaultRoutes: { readonly v4: readonly string[]; readonly v6: readonly string[] };
  /** The name's addresses by DNS or the hosts file. */
  readonly resolved: readonly string[];
}

const loopback = "lo";

/**
 * The addresses of a node, the primary one first, as upstream detects them (nodestatus.NodeAddress): those of
 * `--node-ip`; else one: the node's name if it is an address; an address of the machine that the name resolves to; one
 * of the interface with the default route, or of the loopback interface if that has none; without a default route the
 * first one. None: the machine has no address now. Pure.
 */
export function hostAddresses(
  { given, prefersV6 }: NodeIps,
  isName: string | undefined,
  network: HostNetwork,
): string[] {
  if (given.length > 0) return [...given];
  if (isName !== undefined) return [isName];
  const { interfaces, defaultRoutes: routes, resolved } = network;
  const own = new Set(interfaces.flatMap(({ addresses }) => addresses));
  const families = prefersV6 ? [true, false] : [false, true];
  const first = (among: readonly string[]): string | undefined =>
    families.map((v6) => among.find((address) => isV6(address) === v6)).find((address) => address !== undefined);
  const addressesOf = (name: string): readonly string[] =>
    interfaces.flatMap((each) => (each.name === name ? each.addresses : []));
  const byRoutes = families.flatMap((v6) => {
    const names = v6 ? routes.v6 : routes.v4;
    const through = [...names, ...(names.length > 0 ? [loopback] : [])];
    return through.flatMap((name) => addressesOf(name).filter((address) => isV6(address) === v6));
  });
  const hasRoutes = routes.v4.length + routes.v6.length > 0;
  const outer = interfaces.flatMap(({ name, addresses }) => (name === loopback ? [] : addresses));
  const found = first(resolved.filter((address) => own.has(address))) ?? (hasRoutes ? byRoutes[0] : first(outer));
  return found === undefined ? [] : [found];
}

/**
 * Interfaces with a default route, of `/proc/net/route` and `/proc/net/ipv6_route`. IPv6 routes without a gateway (tunnels)
 * count only where there are no others; upstream ignores them. Pure.
 */
export function defaultRoutes(v4: string, v6: string): HostNetwork["defaultRoutes"] {
  // Each pod may have routes of its own: only default routes are split into fields.
  const fields = (text: string, ofDefault: RegExp): string[][] =>
    (text.match(ofDefault) ?? []).map((line) => line.trim().split(/\s+/));
  const unique = (names: readonly (string | undefined)[]): string[] => [
    ...new Set(names.filter((name) => name !== undefined)),
  ];
  const names = unique(fields(v4, /^[ \t]*\S+[ \t]+0{8}[ \t].*$/gm).map(([name]) => name));
  const routes = fields(v6, /^[ \t]*0{32}[ \t]+00[ \t].*$/gm).filter((line) => line[9] !== loopback);
  const throughGateways = routes.filter((line) => !/^0{32}$/u.test(line[4] ?? ""));
  const counted = names.length + throughGateways.length > 0 ? throughGateways : routes;
  return { v4: names, v6: unique(counted.map((line) => line[9])) };
}

/**
 * The Node addresses that pods see as their hosts' (upstream's GetNodeHostIPs): the first internal one, then external
 * ones, and the first of the other family. Pure.
 */
export function podHostAddresses(addresses: readonly { readonly type: string; readonly address: string }[]): string[] {
  const ofType = (kind: string): string[] => addresses.flatMap(({ type, address }) => (type === kind ? [address] : []));
  const [primary, ...others] = [...ofType("InternalIP"), ...ofType("ExternalIP")];
  if (primary === undefined) return [];
  const second = others.find((address) => isV6(address) !== isV6(primary));
  return [primary, ...(second === undefined ? [] : [second])];
}
