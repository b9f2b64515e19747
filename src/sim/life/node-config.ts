import { defaultImageLimits } from "../../images/image-manager.ts";
import type { KubeletConfig } from "../../kubelet/config.ts";
import { sysctlAllowlist } from "../../pods/sysctl-allowlist.ts";
import { defaultGarbagePolicy } from "../../runtime/actions/garbage.ts";
import { defaultPodIds } from "../../runtime/config/id-ranges.ts";
import type { SimRandom } from "../random.ts";

const podIds = defaultPodIds(65_536);

const resources = {
  cpuQuota: true,
  cpuPeriodMicroseconds: 100_000n,
  cgroupVersion: 2,
  singleProcessOomKill: false,
  swapAccounting: true,
  memoryCapacityBytes: 8n << 30n,
  hugePageSizes: [],
  allocatable: {},
} as const;

/** A typical node. */
export const usualConfig: KubeletConfig = {
  node: {
    nodeName: "sim",
    rootDirectory: "/var/lib/kubelet",
    podLogsRoot: "/var/log/pods",
    containerLogsRoot: "/var/log/containers",
    hostIPs: ["10.0.0.1"],
    clusterDomain: "",
    clusterDNS: [],
    resolvConf: "",
    cgroupDriver: "cgroupfs",
    cgroupRoot: "/",
    seccompDefault: false,
    seLinux: false,
    maskedPaths: [],
    resources,
  },
  cgroups: {
    driver: "cgroupfs",
    cgroupRoot: "/",
    cpuQuota: true,
    cpuPeriodMicroseconds: 100_000n,
    podPidsLimit: -1,
    milliCpu: 4000n,
    memoryBytes: 8n << 30n,
    enforced: true,
  },
  pleg: { relistPeriodMs: 1000, eventedRelistPeriodMs: 10_000, channelCapacity: 20, inspections: 8 },
  worker: {
    syncFrequencyMs: 60_000,
    errorBackOffMs: 10_000,
    observeLimitMs: 120_000,
    maxContainerRestartPeriodMs: 300_000,
    garbage: defaultGarbagePolicy,
  },
  images: {
    ...defaultImageLimits,
    verification: { policy: "NeverVerifyPreloadedImages", allowlist: [] },
    credentialFiles: [],
  },
  podIds,
  parallelStarts: 4,
  housekeepingPeriodMs: 2000,
  volumeStatsPeriodMs: 60_000,
  usesQuotas: false,
  logRotation: { maxSizeBytes: 10_000, maxFiles: 5, maxWorkers: 1, monitorIntervalMs: 10_000 },
  garbage: { ...defaultGarbagePolicy, periodMs: 60_000 },
  runtimeName: "sim",
  admission: { sysctls: sysctlAllowlist("6.8.0", []), appArmor: false, supplementalGroupsPolicy: false },
};

/** Properties of a life's node. */
export interface NodeManner {
  /** Few resources. */
  readonly isTight?: boolean;
  /** Without events, pods are synced only once an hour. */
  readonly isSeldomSynced?: boolean;
  /** Pods with user namespaces soon reuse IDs of others. */
  readonly hasFewIds?: boolean;
  readonly hasSELinux?: boolean;
  /** Project quotas measure volumes. */
  readonly usesQuotas?: boolean;
  /** Feature gate MemoryQoS. */
  readonly protectsMemory?: boolean;
}

const memoryQos = { policy: "TieredReservation", throttlingFactor: 0.9 } as const;
const memoryQosOfContainers = { ...memoryQos, allocatableBytes: 8n << 30n, pageBytes: 4096 } as const;

/** More than the concurrent pods. */
const fewPods = 25;

const little = { cpu: "1", memory: "512Mi" };

/** A node's configuration: the usual one, with some limits small or large. */
export function drawConfig(random: SimRandom, manner: NodeManner = {}): KubeletConfig {
  const maxPerPodContainer = random.pick([1, 1, 0, 3]);
  const maxContainers = random.pick([-1, -1, 5]);
  const garbage = { ...defaultGarbagePolicy, maxPerPodContainer, maxContainers };
  const channelCapacity = random.pick([1000, 20, 2]);
  const inspections = random.pick([32, 8, 1]);
  const images = { ...usualConfig.images, maxParallelImagePulls: random.pick([5, 1]) };
  const parallelStarts = random.pick([4, 1]);
  const allocatable = random.pick([{}, {}, little]);
  const protectsMemory = manner.protectsMemory === true;
  return {
    ...usualConfig,
    ...(protectsMemory && { cgroups: { ...usualConfig.cgroups, memoryQos } }),
    pleg: { ...usualConfig.pleg, channelCapacity, inspections },
    worker: { ...usualConfig.worker, ...(manner.isSeldomSynced === true && { syncFrequencyMs: 3_600_000 }), garbage },
    garbage: { ...usualConfig.garbage, ...garbage },
    images,
    parallelStarts,
    usesQuotas: manner.usesQuotas === true,
    ...(manner.hasFewIds === true && { podIds: { ...podIds, length: fewPods * podIds.perPod } }),
    node: {
      ...usualConfig.node,
      seLinux: manner.hasSELinux === true,
      resources: {
        ...resources,
        allocatable: manner.isTight === true ? little : allocatable,
        ...(protectsMemory && { memoryQos: memoryQosOfContainers }),
      },
    },
  };
}
