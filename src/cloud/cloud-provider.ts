import { isIpAddress, labelValueProblem } from "../base/formats.ts";

export interface NodeAddress {
  readonly type: "InternalIP" | "ExternalIP" | "InternalDNS" | "ExternalDNS" | "Hostname";
  readonly address: string;
}

/** What a cloud knows of the node's machine. */
export interface CloudInstance {
  /** `aws:///us-east-1a/i-0123`: identifies the machine in its cloud. */
  readonly providerId: string;
  /** Unknown values are empty, here and below. */
  readonly instanceType: string;
  readonly zone: string;
  readonly region: string;
  readonly addresses: readonly NodeAddress[];
}

/** Queries a cloud's metadata of this machine. */
export interface CloudProvider {
  /** `ec2` */
  readonly name: string;
  /** @throws Error when it does not answer, or with an impossible answer */
  instance(signal: AbortSignal): Promise<CloudInstance>;
}

/** Upstream's labels for cloud metadata, including the deprecated names. Pure. */
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

/** Maximum text of a metadata service in messages. */
const longestShown = 60;

/**
 * Validates the instance metadata: whoever answers on the link-local address must not control the Node. Pure.
 * @throws Error that names the problem
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
 * The addresses of a Node on this machine: with `--node-ip` that address comes first and is the only one of its type,
 * as in upstream's cloud providers. Pure.
 * @throws Error when the cloud does not have that address
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
