import type { CgroupSample } from "./cgroup-sample.ts";
import type { DiskCounters } from "./disk-counters.ts";
import type { NetworkSample } from "./node-sample.ts";

/** A cgroup as `/metrics/cadvisor` shows it. */
export interface CgroupView {
  readonly sample: CgroupSample;
  /** Of sandboxes and of the machine. */
  readonly network: NetworkSample | undefined;
  readonly processes: ProcessFigures | undefined;
  /** Wall clock ms; undefined: not known. */
  readonly startedMs: number | undefined;
  /** Names of block devices by `major:minor`. */
  readonly devices: ReadonlyMap<string, string>;
  /** Of the machine: what the kernel counts of its mounted disks. */
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
  /** Of the extra labels. */
  readonly labels: readonly string[];
  readonly value: number;
}

export interface ViewMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly labels: readonly string[];
  /** Whether cAdvisor dates it: what was measured, not what is configured. */
  readonly dated: boolean;
  readonly values: (view: CgroupView) => readonly ViewValue[];
}
