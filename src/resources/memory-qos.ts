import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { CgroupResources } from "../ports/cgroups.ts";
import { parseList, podRequests } from "./pod-totals.ts";
import { qosClass } from "./qos.ts";

/** How the kernel protects and throttles memory (KEP-2570, feature gate MemoryQoS, cgroup v2). */
export interface MemoryQos {
  /** memoryReservationPolicy; None: no protection. */
  readonly policy: "None" | "TieredReservation";
  /** memoryThrottlingFactor, above 0 and at most 1. */
  readonly throttlingFactor: number;
}

export interface NodeMemoryQos extends MemoryQos {
  /** The machine's memory minus system and kube reserved. */
  readonly allocatableBytes: bigint;
  /** Of a page of memory: the unit of memory.high. */
  readonly pageBytes: number;
}

export type MemoryProtection = Required<Pick<CgroupResources, "memoryMinBytes" | "memoryLowBytes">>;

const unprotected: MemoryProtection = { memoryMinBytes: 0, memoryLowBytes: 0 };

/**
 * A container's cgroup values (upstream: generateLinuxContainerResources). All three are always set, so that a resize
 * resets earlier values. Pure.
 */
export function containerMemoryQos(pod: Pod, container: Container, qos: NodeMemoryQos): Record<string, string> {
  const request = parseList(container.resources?.requests).get("memory")?.value() ?? 0n;
  const limit = parseList(container.resources?.limits).get("memory")?.value() ?? 0n;
  const { memoryMinBytes, memoryLowBytes } = protection(pod, Number(request), qos);
  return {
    "memory.min": String(memoryMinBytes),
    "memory.low": String(memoryLowBytes),
    "memory.high": memoryHigh(Number(request), Number(limit), qos),
  };
}

/** memory.high; no throttling if the request equals the limit. */
function memoryHigh(request: number, limit: number, qos: NodeMemoryQos): string {
  const { throttlingFactor, allocatableBytes, pageBytes } = qos;
  if (request === limit) return "max";
  const most = limit === 0 ? Number(allocatableBytes) : limit;
  const high = Math.floor((request + (most - request) * throttlingFactor) / pageBytes) * pageBytes;
  return high > request ? String(high) : "max";
}

/** A pod cgroup's protection: memory.min for Guaranteed, memory.low for Burstable. Pure. */
export function podMemoryProtection(pod: Pod, qos: MemoryQos): MemoryProtection {
  return protection(pod, Number(podRequests(pod).get("memory")?.value() ?? 0n), qos);
}

function protection(pod: Pod, requestBytes: number, { policy }: MemoryQos): MemoryProtection {
  if (policy === "None") return unprotected;
  return qosClass(pod) === "Guaranteed"
    ? { ...unprotected, memoryMinBytes: requestBytes }
    : { ...unprotected, memoryLowBytes: requestBytes };
}
