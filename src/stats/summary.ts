import type { CgroupSample, MemorySample } from "./cgroup-sample.ts";
import type { InterfaceCounters, Pressure } from "../base/kernel-text.ts";
import type {
  ContainerSample,
  MachineSample,
  NetworkSample,
  NodeSample,
  PodSample,
  SystemSample,
} from "./node-sample.ts";
import { hasRunningContainer } from "./stats-pods.ts";
import type { ContainerStorage, NodeStorage, PodStorage } from "./storage-types.ts";
import type {
  ContainerStats,
  CpuStats,
  FsStats,
  InterfaceStats,
  IoStats,
  MemoryStats,
  NetworkStats,
  PodStats,
  Summary,
  SwapStats,
} from "./summary-types.ts";

/** The interface whose counters represent the network, in every CNI. */
const mainInterface = "eth0";

/** Second precision, as metav1.Time. */
export function apiTime(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
}

/**
 * A node in the format of `/stats/summary`. Pure.
 * @param storage undefined with only_cpu_and_memory: disks, networks and pressure are then omitted
 */
export function summaryOf(nodeName: string, { machine, system, pods }: NodeSample, storage?: NodeStorage): Summary {
  const wide = storage !== undefined;
  return {
    node: {
      nodeName,
      systemContainers: system.filter(({ name }) => name !== "qos").map((each) => systemStats(each, wide)),
      startTime: apiTime(machine.bootedMs),
      ...cpuAndMemory(machine.sample, wide),
      swap: machineSwap(machine),
      ...(storage && machineStats(machine, storage)),
    },
    pods: pods.filter(({ pod }) => hasRunningContainer(pod)).map((pod) => podStats(pod, storage)),
  };
}

function machineStats(machine: MachineSample, { fs, imageFs, containerFs }: NodeStorage): object {
  const { network, ioPressure, sample } = machine;
  const runtime = { ...(imageFs && { imageFs }), ...(containerFs && { containerFs }) };
  const time = apiTime(sample.timeMs);
  return {
    ...(ioPressure && { io: { time, psi: ioPressure } }),
    ...(network && { network: networkStats(network) }),
    ...(fs && { fs }),
    runtime,
    rlimit: {
      time,
      ...(machine.maxTasks !== undefined && { maxpid: machine.maxTasks }),
      ...(machine.tasks !== undefined && { curproc: machine.tasks }),
    },
  };
}

function machineSwap({ sample, swapTotalBytes, swapFreeBytes }: MachineSample): SwapStats {
  const time = apiTime(sample.timeMs);
  return { time, swapAvailableBytes: swapFreeBytes, swapUsageBytes: swapTotalBytes - swapFreeBytes };
}

function systemStats({ name, startedMs, sample }: SystemSample, wide: boolean): ContainerStats {
  const startTime = startedMs === undefined ? null : apiTime(startedMs);
  return { name, startTime, ...cpuAndMemory(sample, wide), ...swap(sample), ...(wide && io(sample)) };
}

function podStats({ pod, sample, containers, network }: PodSample, storage: NodeStorage | undefined): PodStats {
  const { namespace, name, uid } = pod.ref;
  const own: PodStorage | undefined = storage?.pods.get(uid);
  const wide = storage !== undefined;
  const processes = containers.reduce((sum, container) => sum + container.sample.pids.length, 0);
  return {
    podRef: { name, namespace, uid },
    startTime: apiTime(pod.createdMs),
    containers: containers.map((container) => {
      return containerStats(container, wide, own?.containers.get(container.container.id));
    }),
    ...(sample && { ...cpuAndMemory(sample, wide), ...swap(sample) }),
    ...(wide && sample && io(sample)),
    ...(wide && network && { network: networkStats(network) }),
    ...(own && own.volumes.length > 0 && { volume: own.volumes }),
    ...(own?.ephemeral && { "ephemeral-storage": own.ephemeral }),
    ...(wide && { process_stats: { process_count: processes } }),
  };
}

function containerStats(
  { container, sample }: ContainerSample,
  wide: boolean,
  storage: ContainerStorage | undefined,
): ContainerStats {
  return {
    name: container.name,
    startTime: apiTime(container.createdMs),
    ...cpuAndMemory(sample, wide),
    ...(wide && io(sample)),
    ...(storage?.rootfs && { rootfs: storage.rootfs }),
    ...(storage?.logs && { logs: storage.logs }),
    ...swap(sample),
  };
}

function cpuAndMemory(sample: CgroupSample, wide: boolean): { cpu?: CpuStats; memory?: MemoryStats } {
  const time = apiTime(sample.timeMs);
  const { cpu, memory, nanoCores } = sample;
  return {
    ...(cpu && {
      cpu: {
        time,
        ...(nanoCores !== undefined && { usageNanoCores: nanoCores }),
        usageCoreNanoSeconds: cpu.usageNanoseconds,
        ...(wide && psi(cpu.pressure)),
      },
    }),
    ...(memory && { memory: memoryStats(memory, time, wide) }),
  };
}

function memoryStats(memory: MemorySample, time: string, wide: boolean): MemoryStats {
  const { limit, usage, rss, pageFaults, majorPageFaults } = memory;
  return {
    time,
    ...(limit !== undefined && { availableBytes: Math.max(0, limit - memory.workingSet) }),
    usageBytes: usage,
    workingSetBytes: memory.workingSet,
    rssBytes: rss,
    pageFaults,
    majorPageFaults,
    ...(wide && psi(memory.pressure)),
  };
}

function swap({ memory, timeMs }: CgroupSample): { swap?: SwapStats } {
  if (memory === undefined) return {};
  const { swap: used, swapLimit } = memory;
  const available = swapLimit === undefined ? {} : { swapAvailableBytes: Math.max(0, swapLimit - used) };
  return { swap: { time: apiTime(timeMs), ...available, swapUsageBytes: used } };
}

/** Only if the kernel has per-cgroup pressure: zeros would claim that nothing ever stalled. */
function io(sample: CgroupSample): { io?: IoStats } {
  const pressure = sample.io?.pressure;
  return pressure === undefined ? {} : { io: { time: apiTime(sample.timeMs), psi: pressure } };
}

function psi(pressure: Pressure | undefined): { psi?: Pressure } {
  return pressure === undefined ? {} : { psi: pressure };
}

function networkStats({ timeMs, interfaces }: NetworkSample): NetworkStats {
  const all = interfaces.map(interfaceStats);
  const main = all.find(({ name }) => name === mainInterface);
  return { time: apiTime(timeMs), ...(main ?? { name: "" }), interfaces: all };
}

function interfaceStats({ name, rxBytes, rxErrors, txBytes, txErrors }: InterfaceCounters): InterfaceStats {
  return { name, rxBytes, rxErrors, txBytes, txErrors };
}

/** File system figures for a part of it: the free space is shared. */
export function fsStats(
  timeMs: number,
  fileSystem: { availableBytes: number; capacityBytes: number; inodes: number; inodesFree: number } | undefined,
  used: { readonly bytes: number | undefined; readonly inodes: number | undefined },
): FsStats {
  return {
    time: apiTime(timeMs),
    ...(fileSystem && { availableBytes: fileSystem.availableBytes, capacityBytes: fileSystem.capacityBytes }),
    ...(used.bytes !== undefined && { usedBytes: used.bytes }),
    ...(fileSystem && { inodesFree: fileSystem.inodesFree, inodes: fileSystem.inodes }),
    ...(used.inodes !== undefined && { inodesUsed: used.inodes }),
  };
}
