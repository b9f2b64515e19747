import { isIpAddress, labelValueProblem } from "../base/formats.ts";

export interface NodeAddress {
  readonly type: "InternalIP" | "ExternalIP" | "InternalDNS" | "ExternalDNS" | "Hostname";
  readonly address: string;
}

/** What a cloud knows of the machine that a node runs on. */
export interface CloudInstance {
  /** `aws:///us-east-1a/i-0123`: names the machine in its cloud. */
  readonly providerId: string;
  /** What the cloud does not tell is empty, here and below. */
  readonly instanceType: string;
  readonly zone: string;
  readonly region: string;
  readonly addresses: readonly NodeAddress[];
}

/** Asks a cloud of this machine. */
export interface CloudProvider {
  /** `ec2` */
  readonly name: string;
  /** @throws Error in words when it does not answer, or with something that can't be true */
  instance(signal: AbortSignal): Promise<CloudInstance>;
}

/** Upstream's labels of what a cloud tells; the older names go with the new ones. Pure. */
export function cloudLabels({ instanceType, zone, region }: CloudInstance): Readonly<Record<string, string>> {
  const labels: readonly (readonly [name: string, value: string])[] = [
    ["node.kubernetes.io/instance-type", instanceType],
    ["beta.kubernetes.io/instance-type", instanceType],
    ["topology.kubernetes.io/zone", zone],
    ["failure-domain.beta.kubernetes.io/zone", zone],
    ["topology.kubernetes.io/region", region],
    ["failure-domain.beta.kubernetes.io/region", region],
  ];
  return Object.fromEntries(labels.filter(([, value]) => value !== ""));
}

/** Longest text of a metadata service that is shown. */
const longestShown = 60;

/**
 * The instance as it was told, if it can be true: whoever answers on the link-local address must not put what it likes
 * into the Node. Pure.
 * @throws Error that names what is wrong
 */
export function checkedInstance(instance: CloudInstance): CloudInstance {
  const { providerId, instanceType, zone, region, addresses } = instance;
  if (!/^[a-z][\w.+-]*:\/\/[\w./:()-]+$/u.test(providerId) || providerId.length > 512) {
    throw new Error(`${shown(providerId)} is not a provider ID`);
  }
  for (const [name, value] of Object.entries({ "instance type": instanceType, zone, region })) {
    const problem = labelValueProblem(value);
    if (problem !== undefined) throw new Error(`the ${name} ${shown(value)} is not a valid label value`);
  }
  for (const { type, address } of addresses) {
    const isGood = type.endsWith("IP") ? isIpAddress(address) : isHostName(address);
    if (!isGood) throw new Error(`the address ${shown(address)} is not a valid ${type}`);
  }
  if (addresses.length === 0) throw new Error("the machine has no address");
  return instance;
}

function isHostName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/iu.test(text);
}

function shown(text: string): string {
  return JSON.stringify(text.length > longestShown ? `${text.slice(0, longestShown)}…` : text);
}

/**
 * The addresses of a Node whose machine has these: with `--node-ip` that address goes first and stands alone among those of
 * its kind, as upstream's cloud providers had it. Pure.
 * @throws Error when the cloud knows no such address
 */
export function addressesWithNodeIp(found: readonly NodeAddress[], nodeIps: readonly string[]): readonly NodeAddress[] {
  if (nodeIps.length === 0) return found;
  const chosen = nodeIps.map((ip) => {
    const match = found.find(({ address }) => address === ip);
    if (match === undefined) throw new Error(`failed to get node address from cloud provider that matches ip: ${ip}`);
    return match;
  });
  const kinds = new Set(chosen.map(({ type }) => type));
  return [...chosen, ...found.filter(({ type }) => !kinds.has(type))];
}
