/** An IPv4 network: first address as an unsigned 32-bit number, and the prefix length. */
export interface Ipv4Network {
  readonly address: number;
  readonly prefix: number;
}

/** A row of the routing table. */
export interface Route {
  readonly interface: string;
  readonly network: Ipv4Network;
}

/** Candidate ranges for pod subnets: that of CNI's examples and Podman, and two less used ones. */
const candidateSubnets: readonly Ipv4Network[] = ["10.88.0.0", "10.89.0.0", "172.30.0.0"].flatMap((range) =>
  Array.from({ length: 256 }, (_, third) => ({ address: ipv4Address(range) + third * 256, prefix: 24 })),
);

/**
 * The first free /24, looking from a place that the instance names, so that two state directories seldom look at the
 * same one first.
 * @param taken networks that something else on the machine uses
 * @param instance the layout's; undefined looks from the beginning
 * @returns e.g. `10.88.7.0/24`; undefined when none is free
 */
export function chooseSubnet(taken: readonly Ipv4Network[], instance: string | undefined): string | undefined {
  const start = instance === undefined ? 0 : 1 + (Number.parseInt(instance, 16) % 255);
  for (let offset = 0; offset < candidateSubnets.length; offset++) {
    const candidate = candidateSubnets[(start + offset) % candidateSubnets.length];
    if (candidate !== undefined && !taken.some((network) => overlap(network, candidate))) {
      return formatNetwork(candidate);
    }
  }
  return undefined;
}

/** Whether two networks share an address. */
export function overlap(left: Ipv4Network, right: Ipv4Network): boolean {
  const size = 2 ** (32 - Math.min(left.prefix, right.prefix));
  return Math.floor(left.address / size) === Math.floor(right.address / size);
}

/**
 * The routes of /proc/net/route (the main table) but the default route, which overlaps with everything and says
 * nothing. Numbers there are hexadecimal in the machine's byte order; all of Node.js' Linux platforms but s390x are
 * little-endian.
 */
export function parseRoutes(table: string, littleEndian: boolean): Route[] {
  return table
    .split("\n")
    .slice(1)
    .flatMap((line): Route[] => {
      const [name, destination, , , , , , mask] = line.trim().split(/\s+/);
      if (name === undefined || destination === undefined || mask === undefined) return [];
      const prefix = bitCount(Number.parseInt(mask, 16));
      return prefix === 0
        ? []
        : [{ interface: name, network: { address: hexAddress(destination, littleEndian), prefix } }];
    });
}

/** `a.b.c.d` or `a.b.c.d/n` as a network; undefined for anything else. */
export function parseNetwork(text: string): Ipv4Network | undefined {
  const [, address, length] = /^(\d{1,3}(?:\.\d{1,3}){3})(?:\/(\d{1,2}))?$/.exec(text.trim()) ?? [];
  const prefix = Number(length ?? 32);
  if (address === undefined || prefix > 32 || address.split(".").some((octet) => Number(octet) > 255)) return undefined;
  return { address: ipv4Address(address), prefix };
}

function formatNetwork({ address, prefix }: Ipv4Network): string {
  return `${[24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join(".")}/${prefix}`;
}

function ipv4Address(text: string): number {
  return text.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
}

function hexAddress(text: string, littleEndian: boolean): number {
  const bytes = Buffer.from(text.padStart(8, "0"), "hex");
  return littleEndian ? bytes.readUInt32LE() : bytes.readUInt32BE();
}

function bitCount(value: number): number {
  return value.toString(2).replaceAll("0", "").length;
}
