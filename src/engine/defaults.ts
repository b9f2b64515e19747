import { defaultImageLimits } from "../images/image-manager.ts";
import type { KubeletConfig } from "../kubelet.ts";
import type { CgroupDriver } from "../resources/cgroup-names.ts";
import type { MachineInfo } from "./machine.ts";

/** Where things are, and what the node is called. */
export interface NodeSettings {
  readonly nodeName: string;
  readonly rootDirectory: string;
  readonly hostIPs: readonly string[];
  readonly cgroupRoot: string;
  readonly cgroupDriver: CgroupDriver;
  readonly cgroupVersion: 1 | 2;
  readonly runtimeName: string;
}

const defaultCpuPeriodMicroseconds = 100_000n;

/** Upstream's defaults for a node without a cluster (KubeletConfiguration v1beta1), on this machine. */
export function kubeletDefaults(node: NodeSettings, machine: MachineInfo): KubeletConfig {
  const cpu = { cpuQuota: true, cpuPeriodMicroseconds: defaultCpuPeriodMicroseconds };
  return {
    node: {
      ...node,
      podLogsRoot: "/var/log/pods",
      containerLogsRoot: "/var/log/containers",
      clusterDomain: "",
      clusterDNS: [],
      resolvConf: "/etc/resolv.conf",
      seccompDefault: false,
      resources: {
        ...cpu,
        cgroupVersion: node.cgroupVersion,
        singleProcessOomKill: node.cgroupVersion === 1,
        swapAccounting: machine.swapAccounting,
        memoryCapacityBytes: machine.memoryBytes,
        hugePageSizes: machine.hugePageSizes,
        allocatable: { cpu: machine.processors, memory: String(machine.memoryBytes) },
      },
    },
    cgroups: {
      ...cpu,
      driver: node.cgroupDriver,
      cgroupRoot: node.cgroupRoot,
      podPidsLimit: -1,
      milliCpu: BigInt(machine.processors) * 1000n,
      memoryBytes: machine.memoryBytes,
    },
    pleg: { relistPeriodMs: 1000, eventedRelistPeriodMs: 10_000, channelCapacity: 1000, inspections: 32 },
    worker: {
      syncFrequencyMs: 60_000,
      errorBackOffMs: 10_000,
      observeLimitMs: 150_000,
      maxContainerRestartPeriodMs: 300_000,
    },
    images: defaultImageLimits,
    // Measured: a few at a time finish as early as all at once, and half of them twice as soon.
    parallelStarts: machine.processors + 2,
    housekeepingPeriodMs: 2000,
    runtimeRequestTimeoutMs: 120_000,
    runtimeName: node.runtimeName,
  };
}
