import { diskMetrics } from "./cadvisor-disk-metrics.ts";
import type { CgroupSample } from "./cgroup-sample.ts";
import type { InterfaceCounters, Pressure } from "../base/kernel-text.ts";
import type { CgroupView, ViewMetric, ViewValue } from "./view-metric.ts";

type Pick<T> = (view: CgroupView) => T | undefined;

function one(value: number | undefined): ViewValue[] {
  return value === undefined ? [] : [{ labels: [], value }];
}

function counter(name: string, help: string, pick: Pick<number>): ViewMetric {
  return { name, help, type: "counter", labels: [], dated: true, values: (view) => one(pick(view)) };
}

function gauge(name: string, help: string, pick: Pick<number>): ViewMetric {
  return { name, help, type: "gauge", labels: [], dated: true, values: (view) => one(pick(view)) };
}

function setting(name: string, help: string, pick: Pick<number>): ViewMetric {
  return { name, help, type: "gauge", labels: [], dated: false, values: (view) => one(pick(view)) };
}

function seconds(nanoseconds: number | undefined): number | undefined {
  return nanoseconds === undefined ? undefined : nanoseconds / 1e9;
}

const settings: readonly ViewMetric[] = [
  setting("container_start_time_seconds", "Start time of the container since unix epoch in seconds", ({ startedMs }) =>
    startedMs === undefined ? undefined : Math.floor(startedMs / 1000),
  ),
  setting("container_spec_cpu_period", "CPU quota period, in microseconds", ({ sample }) => {
    return sample.cpuLimits?.period;
  }),
  setting(
    "container_spec_cpu_quota",
    "CPU quota for each period, in microseconds",
    ({ sample }) => sample.cpuLimits?.quota,
  ),
  setting("container_spec_cpu_shares", "CPU shares", ({ sample }) => {
    return sample.cpuLimits?.shares;
  }),
  setting("container_spec_memory_limit_bytes", "Limit of memory; 0: none", ({ sample: { memory } }) => {
    return memory === undefined ? undefined : (memory.limit ?? 0);
  }),
  setting(
    "container_spec_memory_swap_limit_bytes",
    "Limit of swap, on cgroup v1 with memory; 0: none",
    ({ sample }) => {
      return sample.memory && (sample.memory.details?.swapLimit ?? 0);
    },
  ),
  setting("container_spec_memory_reservation_limit_bytes", "Memory reservation", ({ sample: { memory } }) => {
    return memory && (memory.details?.reservation ?? 0);
  }),
];

/** Only with a quota: other containers are never throttled. */
function throttling(view: CgroupView): NonNullable<CgroupSample["cpu"]>["throttling"] {
  return view.sample.cpuLimits?.quota === undefined ? undefined : view.sample.cpu?.throttling;
}

const cpu: readonly ViewMetric[] = [
  counter("container_cpu_user_seconds_total", "User CPU time", ({ sample }) => {
    return seconds(sample.cpu?.userNanoseconds);
  }),
  counter("container_cpu_system_seconds_total", "System CPU time", ({ sample }) => {
    return seconds(sample.cpu?.systemNanoseconds);
  }),
  {
    name: "container_cpu_usage_seconds_total",
    help: "CPU time used",
    type: "counter",
    labels: ["cpu"],
    dated: true,
    values: ({ sample }) =>
      sample.cpu === undefined ? [] : [{ labels: ["total"], value: sample.cpu.usageNanoseconds / 1e9 }],
  },
  counter("container_cpu_cfs_periods_total", "Elapsed CPU quota periods", (view) => throttling(view)?.periods),
  counter("container_cpu_cfs_throttled_periods_total", "Throttled CPU quota periods", (view) => {
    return throttling(view)?.throttledPeriods;
  }),
  counter("container_cpu_cfs_throttled_seconds_total", "Time throttled by the CPU quota", (view) => {
    return seconds(throttling(view)?.throttledNanoseconds);
  }),
  counter("container_cpu_cfs_burst_periods_total", "CPU quota periods with burst", (view) => {
    return throttling(view)?.burstPeriods;
  }),
  counter("container_cpu_cfs_burst_seconds_total", "CPU time used in bursts above the quota", (view) => {
    return seconds(throttling(view)?.burstNanoseconds);
  }),
];

const memory: readonly ViewMetric[] = [
  gauge("container_memory_cache", "Page cache", ({ sample }) => sample.memory?.cache),
  gauge("container_memory_rss", "Anonymous memory", ({ sample }) => sample.memory?.rss),
  gauge("container_memory_kernel_usage", "Kernel memory", ({ sample }) => {
    return sample.memory?.details?.kernel;
  }),
  gauge("container_memory_mapped_file", "Mapped files", ({ sample }) => sample.memory?.mappedFile),
  gauge("container_memory_swap", "Swap in use", ({ sample }) => sample.memory?.swap),
  counter(
    "container_memory_failcnt",
    "Memory limit hits; 0 on cgroup v2",
    ({ sample }) => sample.memory?.details?.limitHits,
  ),
  gauge("container_memory_usage_bytes", "Memory in use, page cache included", ({ sample }) => sample.memory?.usage),
  gauge("container_memory_max_usage_bytes", "Peak memory in use; 0: not counted by the kernel", ({ sample }) => {
    return sample.memory?.details?.peak;
  }),
  gauge(
    "container_memory_working_set_bytes",
    "Working set: memory in use without inactive page cache",
    ({ sample }) => {
      return sample.memory?.workingSet;
    },
  ),
  gauge("container_memory_total_active_file_bytes", "Active page cache", ({ sample }) => {
    return sample.memory?.activeFile;
  }),
  gauge("container_memory_total_inactive_file_bytes", "Inactive page cache", ({ sample }) => {
    return sample.memory?.inactiveFile;
  }),
  {
    name: "container_memory_failures_total",
    help: "Page faults",
    type: "counter",
    labels: ["failure_type", "scope"],
    dated: true,
    values: ({ sample: { memory: used } }) =>
      used === undefined
        ? []
        : ["container", "hierarchy"].flatMap((scope) => [
            { labels: ["pgfault", scope], value: used.pageFaults },
            { labels: ["pgmajfault", scope], value: used.majorPageFaults },
          ]),
  },
  counter("container_oom_events_total", "OOM kills", ({ sample }) => {
    return sample.memory?.details?.oomKills;
  }),
];

const processes: readonly ViewMetric[] = [
  gauge("container_processes", "Processes", (view) => view.processes?.processes),
  gauge("container_file_descriptors", "Open file descriptors", (view) => view.processes?.descriptors),
  gauge("container_sockets", "Open sockets", (view) => view.processes?.sockets),
  gauge("container_threads_max", "Limit of processes and threads; 0: no limit", ({ sample: { tasks } }) => {
    return tasks === undefined ? undefined : (tasks.limit ?? 0);
  }),
  gauge("container_threads", "Processes and threads", ({ sample }) => sample.tasks?.current),
  {
    name: "container_ulimits_soft",
    help: "Soft limits of the first process; -1: none",
    type: "gauge",
    labels: ["ulimit"],
    dated: true,
    values: (view) => {
      const limit = view.processes?.openFilesLimit;
      return limit === undefined ? [] : [{ labels: ["max_open_files"], value: limit }];
    },
  },
];

function pressure(resource: string, pick: Pick<Pressure>): ViewMetric[] {
  const name = `container_pressure_${resource.toLowerCase()}`;
  return [
    counter(`${name}_stalled_seconds_total`, `Time during which all tasks were stalled on ${resource}`, (view) => {
      const total = pick(view)?.full.total;
      return total === undefined ? undefined : total / 1e6;
    }),
    counter(`${name}_waiting_seconds_total`, `Time during which some task was stalled on ${resource}`, (view) => {
      const total = pick(view)?.some.total;
      return total === undefined ? undefined : total / 1e6;
    }),
  ];
}

function interfaces(name: string, help: string, pick: (counters: InterfaceCounters) => number): ViewMetric {
  return {
    name: `container_network_${name}_total`,
    help,
    type: "counter",
    labels: ["interface"],
    dated: true,
    values: ({ network }) =>
      network?.interfaces.map((counters) => ({ labels: [counters.name], value: pick(counters) })) ?? [],
  };
}

const network: readonly ViewMetric[] = [
  interfaces("receive_bytes", "Bytes received", ({ rxBytes }) => rxBytes),
  interfaces("receive_packets", "Packets received", ({ rxPackets }) => rxPackets),
  interfaces("receive_packets_dropped", "Received packets dropped", ({ rxDropped }) => rxDropped),
  interfaces("receive_errors", "Receive errors", ({ rxErrors }) => rxErrors),
  interfaces("transmit_bytes", "Bytes sent", ({ txBytes }) => txBytes),
  interfaces("transmit_packets", "Packets sent", ({ txPackets }) => txPackets),
  interfaces("transmit_packets_dropped", "Transmitted packets dropped", ({ txDropped }) => txDropped),
  interfaces("transmit_errors", "Transmit errors", ({ txErrors }) => txErrors),
];

/** The metrics of each cgroup. */
export const viewMetrics: readonly ViewMetric[] = [
  ...settings,
  gauge("container_last_seen", "Last time the container was seen, in seconds since 1970", ({ sample }) => {
    return Math.floor(sample.timeMs / 1000);
  }),
  ...cpu,
  ...memory,
  ...processes,
  ...pressure("CPU", ({ sample }) => sample.cpu?.pressure),
  ...pressure("memory", ({ sample }) => sample.memory?.pressure),
  ...pressure("IO", ({ sample }) => sample.io?.pressure),
  ...network,
  ...diskMetrics,
];
