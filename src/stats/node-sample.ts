import type { CgroupSample } from "./cgroup-sample.ts";
import type { InterfaceCounters, Pressure } from "../base/kernel-text.ts";
import type { StatsContainer, StatsPod } from "./stats-pods.ts";

export interface ContainerSample {
  readonly container: StatsContainer;
  /** Below the root of the hierarchies. */
  readonly cgroup: string;
  readonly sample: CgroupSample;
}

export interface PodSample {
  readonly pod: StatsPod;
  /** The sum of its containers if it has no cgroup of its own. Undefined: its cgroup is gone, or nothing is known. */
  readonly sample: CgroupSample | undefined;
  readonly sandbox: { readonly cgroup: string; readonly sample: CgroupSample } | undefined;
  readonly containers: readonly ContainerSample[];
  /** Of the sandbox's network namespace; undefined if not requested. */
  readonly network: NetworkSample | undefined;
}

export interface NetworkSample {
  readonly timeMs: number;
  readonly interfaces: readonly InterfaceCounters[];
}

/** A system process of the node, or all pods, or those of a QoS class. */
export interface SystemSample {
  /** qos: of a QoS class's pods, only for `/metrics/cadvisor`. */
  readonly name: "kubelet" | "runtime" | "pods" | "qos" | "misc";
  readonly cgroup: string;
  /** Wall clock ms; undefined: not known. */
  readonly startedMs: number | undefined;
  readonly sample: CgroupSample;
}

export interface MachineSample {
  readonly sample: CgroupSample;
  /** Wall clock ms. */
  readonly bootedMs: number;
  readonly swapTotalBytes: number;
  readonly swapFreeBytes: number;
  readonly network: NetworkSample | undefined;
  readonly tasks: number | undefined;
  readonly maxTasks: number | undefined;
  readonly ioPressure: Pressure | undefined;
}

/** A node at one moment. */
export interface NodeSample {
  readonly timeMs: number;
  readonly machine: MachineSample;
  readonly system: readonly SystemSample[];
  readonly pods: readonly PodSample[];
}
