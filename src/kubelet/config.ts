import type { ImageConfig } from "../images/make-images.ts";
import type { LogRotationConfig } from "../logs/rotation.ts";
import type { PlegConfig } from "../pleg/pleg.ts";
import type { NodeAdmission } from "../pods/node-admission.ts";
import type { WorkerConfig } from "../pods/worker-dependencies.ts";
import type { PodCgroupsConfig } from "../resources/pod-cgroups.ts";
import type { QosCgroupsConfig } from "../resources/qos-cgroups.ts";
import type { PodIds } from "../runtime/config/id-ranges.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import type { NodeGarbageConfig } from "../runtime/operations/node-garbage.ts";

export interface CgroupsConfig extends Omit<PodCgroupsConfig & QosCgroupsConfig, "hugePageSizes" | "cgroupRoot"> {
  /** Undefined: pods have no cgroups of their own. */
  readonly cgroupRoot: string | undefined;
}

export interface KubeletConfig {
  readonly node: NodeContext;
  readonly cgroups: CgroupsConfig;
  readonly pleg: PlegConfig;
  readonly worker: WorkerConfig;
  readonly images: ImageConfig;
  /** For pods with user namespaces of their own. */
  readonly podIds: PodIds;
  /** Pods started at a time, and taken down. More finish no sooner; fewer leave processors idle. */
  readonly parallelStarts: number;
  readonly housekeepingPeriodMs: number;
  /** Volumes of claims are measured every one to two of it; 0 or less: never. */
  readonly volumeStatsPeriodMs: number;
  /** Project quotas measure volumes where they can. */
  readonly usesQuotas: boolean;
  readonly logRotation: LogRotationConfig;
  readonly garbage: NodeGarbageConfig;
  /** `containerd`: prefix of container ids in statuses. */
  readonly runtimeName: string;
  readonly admission: NodeAdmission;
}
