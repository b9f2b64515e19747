import type { Family, Sample } from "../metrics/family.ts";
import { viewMetrics } from "./cadvisor-container-metrics.ts";
import type { CgroupView } from "./view-metric.ts";

/** The cgroup's owner; empty: none. */
export interface CgroupLabels {
  /** Its path below the root. */
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly pod: string;
  readonly namespace: string;
  readonly container: string;
}

export interface LabelledView extends CgroupView {
  readonly labels: CgroupLabels;
}

/** A file system of the node. */
export interface FileSystemView {
  readonly device: string;
  readonly capacityBytes: number;
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

export interface MachineView {
  readonly bootId: string;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly cores: number;
  readonly physicalCores: number;
  readonly sockets: number;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  readonly kernelVersion: string;
  readonly osVersion: string;
}

export interface CadvisorView {
  readonly timeMs: number;
  readonly cgroups: readonly LabelledView[];
  readonly fileSystems: readonly FileSystemView[];
  readonly machine: MachineView;
  /** The version in place of cAdvisor's. */
  readonly version: string;
}

const commonLabels: readonly (keyof CgroupLabels)[] = ["container", "id", "image", "name", "namespace", "pod"];

/** `/metrics/cadvisor`. Undefined: could not be measured. Pure. */
export function cadvisorFamilies(view: CadvisorView | undefined): Family[] {
  const failed = [{ labels: [], value: view === undefined ? 1 : 0 }];
  return [
    ...(view === undefined ? [] : [...cgroupFamilies(view), ...fileSystemFamilies(view), ...machineFamilies(view)]),
    gauge("container_scrape_error", "1 if container statistics are missing, 0 otherwise", [], failed),
    gauge("machine_scrape_error", "1 if machine statistics are missing, 0 otherwise", [], failed),
  ].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function cgroupFamilies({ cgroups }: CadvisorView): Family[] {
  const labelled = cgroups.map((view) => ({ view, labels: commonLabels.map((name) => view.labels[name]) }));
  return viewMetrics.map(({ name, help, type, labels: extra, dated, values }): Family => {
    const samples = labelled.flatMap(({ view, labels }) => {
      const time = dated ? { timeMs: view.sample.timeMs } : {};
      return values(view).map((each): Sample => {
        const all = each.labels.length === 0 ? labels : [...labels, ...each.labels];
        return { labels: all, value: each.value, ...time };
      });
    });
    return {
      name,
      help,
      type,
      stability: undefined,
      labels: extra.length === 0 ? commonLabels : [...commonLabels, ...extra],
      samples,
    };
  });
}

function fileSystemFamilies({ fileSystems, timeMs }: CadvisorView): Family[] {
  const labels = [...commonLabels, "device"];
  const family = (name: string, help: string, pick: (view: FileSystemView) => number): Family => {
    const samples = fileSystems.map((view) => {
      return { labels: ["", "/", "", "", "", "", view.device], value: pick(view), timeMs };
    });
    return gauge(name, help, labels, samples);
  };
  return [
    family("container_fs_inodes_free", "Free inodes", ({ inodesFree }) => inodesFree),
    family("container_fs_inodes_total", "Inodes of the file system", ({ inodes }) => inodes),
    family("container_fs_limit_bytes", "Size of the file system", ({ capacityBytes }) => capacityBytes),
    family("container_fs_usage_bytes", "Used bytes of the file system", ({ usedBytes }) => usedBytes),
  ];
}

function machineFamilies({ machine, version, timeMs }: CadvisorView): Family[] {
  const labels = ["boot_id", "machine_id", "system_uuid"];
  const own = [machine.bootId, machine.machineId, machine.systemUuid];
  const family = (name: string, help: string, value: number): Family => {
    return gauge(name, help, labels, [{ labels: own, value, timeMs }]);
  };
  const { kernelVersion, osVersion } = machine;
  return [
    family("machine_cpu_physical_cores", "Cores", machine.physicalCores),
    family("machine_cpu_cores", "Logical processors", machine.cores),
    family("machine_cpu_sockets", "Sockets", machine.sockets),
    family("machine_memory_bytes", "Memory of the machine", machine.memoryBytes),
    family("machine_swap_bytes", "Swap of the machine", machine.swapBytes),
    gauge(
      "cadvisor_version_info",
      "Always 1; labelled with the kernel, OS and version",
      ["cadvisorRevision", "cadvisorVersion", "dockerVersion", "kernelVersion", "osVersion"],
      [{ labels: ["", version, "", kernelVersion, osVersion], value: 1 }],
    ),
  ];
}

function gauge(name: string, help: string, labels: readonly string[], samples: readonly Sample[]): Family {
  return { name, help, type: "gauge", stability: undefined, labels, samples };
}
