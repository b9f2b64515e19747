import type { Pod } from "../api/pod.ts";
import { hugePageAmounts, pageSizeOf } from "../resources/huge-pages.ts";
import { isSidecar, parseList, podRequests } from "../resources/pod-totals.ts";

/** Why a pod may not run on this node; reason and message as upstream has them. */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

/** Reason of pods that ask for what this version can't do (upstream's, of nodes without a declared feature). */
export const unsupportedReason = "PodFeatureUnsupported";

/**
 * Decides whether a pod may run beside those that are active (upstream's admission handlers, as far as they apply to a
 * node without a scheduler). Pure.
 */
export function admit(pod: Pod, active: readonly Pod[]): Rejection | undefined {
  for (const wanted of hostPorts(pod)) {
    const holder = active.find((other) => hostPorts(other).some((taken) => conflict(wanted, taken)));
    if (holder === undefined) continue;
    const port = `${wanted.protocol} ${wanted.ip}:${wanted.port}`;
    const message = `Pod was rejected: host port ${port} is taken by pod ${holder.metadata.namespace}/${holder.metadata.name}`;
    return { reason: "NodePorts", message };
  }
  return undefined;
}

/** Prefix of the reason of pods for which the node has not enough of a resource. */
export const outOfPrefix = "OutOf";

/**
 * Huge pages are set aside for good, so that they can't be promised twice: a pod that asks for more than other pods
 * leave is refused. Pure.
 * @param allocatable node allocatable by resource name
 */
export function admitHugePages(
  pod: Pod,
  active: readonly Pod[],
  allocatable: Readonly<Record<string, string | number>>,
): Rejection | undefined {
  const capacity = hugePageAmounts(parseList(allocatable));
  for (const [name, requested] of podRequests(pod)) {
    const size = pageSizeOf(name);
    if (size === undefined) continue;
    const has = capacity.get(size) ?? 0n;
    const used = active.reduce((sum, other) => sum + (hugePageAmounts(podRequests(other)).get(size) ?? 0n), 0n);
    if (requested.value() + used <= has) continue;
    const figures = `requested: ${requested.value()}, used: ${used}, capacity: ${has}`;
    const message = `Pod was rejected: Node didn't have enough resource: ${name}, ${figures}`;
    return { reason: `${outOfPrefix}${name}`, message };
  }
  return undefined;
}

/** Whether the pod contends with others for ports of the node. */
export function hasHostPorts(pod: Pod): boolean {
  return hostPorts(pod).length > 0;
}

interface HostPort {
  readonly protocol: string;
  readonly ip: string;
  readonly port: number;
}

/** Of containers that run for as long as the pod does: ports of other init containers are free again soon. */
function hostPorts(pod: Pod): HostPort[] {
  return [...(pod.spec.initContainers ?? []).filter(isSidecar), ...pod.spec.containers]
    .flatMap((container) => container.ports ?? [])
    .filter((port) => port.hostPort !== undefined && port.hostPort > 0)
    .map((port) => ({ protocol: port.protocol ?? "TCP", ip: port.hostIP ?? "0.0.0.0", port: port.hostPort ?? 0 }));
}

function conflict(a: HostPort, b: HostPort): boolean {
  return a.protocol === b.protocol && a.port === b.port && (a.ip === b.ip || anyAddress(a.ip) || anyAddress(b.ip));
}

function anyAddress(ip: string): boolean {
  return ip === "" || ip === "0.0.0.0" || ip === "::";
}
