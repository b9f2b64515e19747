import type { Pod } from "../api/pod.ts";
import type { CgroupResources } from "../ports/cgroups.ts";
import { milliCpuToShares, minShares } from "./cpu.ts";
import { formatPageSize } from "./huge-pages.ts";
import type { MemoryQos } from "./memory-qos.ts";
import type { NodeCapacity } from "./node-allocatable.ts";
import { podRequests } from "./pod-totals.ts";
import { type QosClass, qosClass } from "./qos.ts";

/** Values of QoS class cgroups besides CPU weights; undefined: not written. */
export interface QosClassSettings {
  readonly memoryQos?: MemoryQos | undefined;
  /** qosReserved for memory. */
  readonly reservedMemory?: QosReservedMemory | undefined;
}

/** The part of better classes' requests that is withheld from lower ones. */
export interface QosReservedMemory {
  readonly percent: number;
  /** The machine's memory minus system and kube reserved. */
  readonly allocatableBytes: bigint;
}

/** Desired values of the cgroups of all pods and of two QoS classes; missing values are not written. */
export interface QosResources {
  readonly kubepods: CgroupResources;
  readonly burstable: CgroupResources;
  readonly bestEffort: CgroupResources;
}

/** Pods' total requests by class. */
export interface ClassRequests {
  readonly burstableMilliCpu: bigint;
  readonly guaranteedBytes: bigint;
  readonly burstableBytes: bigint;
}

/** Pure. */
export function classRequests(pods: Iterable<Pod>): ClassRequests {
  const sums = { burstableMilliCpu: 0n, guaranteedBytes: 0n, burstableBytes: 0n };
  for (const pod of pods) {
    const requests = podRequests(pod);
    const bytes = requests.get("memory")?.value() ?? 0n;
    const qos: QosClass = qosClass(pod);
    if (qos === "Guaranteed") sums.guaranteedBytes += bytes;
    if (qos !== "Burstable") continue;
    sums.burstableBytes += bytes;
    sums.burstableMilliCpu += requests.get("cpu")?.milliValue() ?? 0n;
  }
  return sums;
}

/**
 * The burstable class's CPU weight is the sum of its requests, best effort's the minimum. With MemoryQoS a class is
 * protected by the sum of its pods, and kubepods by the sum of its classes, because the kernel protects no cgroup more
 * than its parent. Pure.
 */
export function qosResources(requests: ClassRequests, settings: QosClassSettings = {}): QosResources {
  const { burstableMilliCpu, guaranteedBytes, burstableBytes } = requests;
  const { memoryQos, reservedMemory } = settings;
  const [guaranteed, burstable] =
    memoryQos?.policy === "TieredReservation" ? [Number(guaranteedBytes), Number(burstableBytes)] : [0, 0];
  const limits = reservedMemory && classLimits(requests, reservedMemory);
  return {
    kubepods: memoryQos === undefined ? {} : { memoryMinBytes: guaranteed + burstable },
    burstable: {
      cpuShares: Number(milliCpuToShares(burstableMilliCpu)),
      ...(memoryQos && { memoryLowBytes: burstable }),
      ...(limits && { memoryLimitBytes: limits.burstable }),
    },
    bestEffort: { cpuShares: Number(minShares), ...(limits && { memoryLimitBytes: limits.bestEffort }) },
  };
}

function classLimits(
  { guaranteedBytes, burstableBytes }: ClassRequests,
  { percent, allocatableBytes }: QosReservedMemory,
): { readonly burstable: number; readonly bestEffort: number } {
  const kept = (bytes: bigint): bigint => (bytes * BigInt(percent)) / 100n;
  const burstable = atLeastZero(allocatableBytes - kept(guaranteedBytes));
  return { burstable: Number(burstable), bestEffort: Number(atLeastZero(burstable - kept(burstableBytes))) };
}

function atLeastZero(bytes: bigint): bigint {
  return bytes < 0n ? 0n : bytes;
}

/**
 * Limits of the cgroup of all pods: the capacity minus reservations (eviction thresholds are not subtracted, KEP "node
 * allocatable").
 */
export function kubepodsResources({
  milliCpu,
  memoryBytes,
  pids,
  hugePages = new Map(),
}: NodeCapacity): CgroupResources {
  const pages = [...hugePages].map(([size, bytes]) => [formatPageSize(size), Number(bytes)] as const);
  return {
    cpuShares: Number(milliCpuToShares(milliCpu)),
    memoryLimitBytes: Number(memoryBytes),
    ...(pids !== undefined && { pidsLimit: Number(pids) }),
    ...(pages.length > 0 && { hugePageLimitBytes: Object.fromEntries(pages) }),
  };
}
