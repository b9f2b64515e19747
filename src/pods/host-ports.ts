import { lastingContainers } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";

/** The host port that the pod shares with another; undefined: none. Pure. */
export function hostPortConflict(pod: Pod, others: readonly Pod[]): string | undefined {
  for (const wanted of hostPorts(pod)) {
    const holder = others.find((other) => hostPorts(other).some((taken) => conflict(wanted, taken)));
    if (holder === undefined) continue;
    const port = `${wanted.protocol} ${wanted.ip}:${wanted.port}`;
    return `host port ${port} is taken by pod ${holder.metadata.namespace}/${holder.metadata.name}`;
  }
  return undefined;
}

/**
 * Only this conflicts with every address, as in the scheduler: otherwise it would assign pods to the node that are rejected
 * here. `::` is the wildcard of IPv6 alone: a port can be mapped for each family.
 */
const anyAddress = "0.0.0.0";

interface HostPort {
  readonly protocol: string;
  readonly ip: string;
  readonly port: number;
}

/** Only of containers that run for the pod's lifetime: ports of init containers are free again soon. */
function hostPorts(pod: Pod): HostPort[] {
  return lastingContainers(pod.spec)
    .flatMap((container) => container.ports ?? [])
    .filter((port) => port.hostPort !== undefined && port.hostPort > 0)
    .map(({ protocol, hostIP, hostPort }) => ({
      protocol: protocol ?? "TCP",
      ip: hostIP === undefined || hostIP === "" ? anyAddress : hostIP,
      port: hostPort ?? 0,
    }));
}

function conflict(a: HostPort, b: HostPort): boolean {
  return a.protocol === b.protocol && a.port === b.port && isShared(a.ip, b.ip);
}

function isShared(a: string, b: string): boolean {
  return a === b || a === anyAddress || b === anyAddress;
}
