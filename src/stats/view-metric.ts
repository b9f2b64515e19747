import type { CgroupSample } from "./cgroup-sample.ts";
import type { DiskCounters } from "./disk-counters.ts";
import type { NetworkSample } from "./node-sample.ts";

/** A cgroup in the view of `/metrics/cadvisor`. */
export interface CgroupView {
  readonly sample: CgroupSample;
  /** For sandboxes and the machine. */
  readonly network: NetworkSample | undefined;
  readonly processes: ProcessFigures | undefined;
  /** Wall clock ms; undefined: not known. */
  readonly startedMs: number | undefined;
  /** Names of block devices by `major:minor`. */
  readonly devices: ReadonlyMap<string, string>;
  /** For the machine: the kernel's counters of its mounted disks. */
  readonly disks?: readonly DiskCounters[];
}

export interface ProcessFigures {
  readonly processes: number;
  readonly descriptors: number;
  readonly sockets: number;
  /** Soft limit of open files of its first process; −1: none. */
  readonly openFilesLimit: number | undefined;
}

export interface ViewValue {
  /** Values of the extra labels. */
  readonly labels: readonly string[];
  readonly value: number;
}

export interface ViewMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly labels: readonly string[];
  /** Whether it has a timestamp, as in cAdvisor: measured values have, configured ones have not. */
  readonly dated: boolean;
  readonly values: (view: CgroupView) => readonly ViewValue[];
}
