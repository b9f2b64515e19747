import {
  parseBootTime,
  parseLimit,
  parseNetDev,
  parseOpenFilesLimit,
  parseProcessStat,
  parseResidentBytes,
} from "../base/kernel-text.ts";
import type { Family } from "./family.ts";

/** What is read of podwright's own process. */
export const processPaths = [
  "/proc/self/stat",
  "/proc/self/status",
  "/proc/stat",
  "/proc/self/limits",
  "/proc/self/net/dev",
] as const;

/** What every client library of Prometheus shows where there is no limit: the greatest number of 64 bits. */
const unlimitedBytes = 2 ** 64;

/** `process_*`, as every program of Prometheus' client libraries shows. @param texts of {@link processPaths} */
export function processFamilies(texts: readonly (string | undefined)[], openFiles: number | undefined): Family[] {
  const [stat, status, machine, limits, netDev] = texts;
  const usage = parseProcessStat(stat);
  const bootedMs = parseBootTime(machine);
  const network = parseNetDev(netDev);
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  const limit = parseOpenFilesLimit(limits);
  const addressSpace = parseLimit(limits, "address space");
  const started = usage && bootedMs !== undefined ? (bootedMs + usage.startedMs) / 1000 : undefined;
  const cpuSeconds = usage === undefined ? undefined : usage.cpuNanoseconds / 1e9;
  return [
    family("counter", "process_cpu_seconds_total", "CPU time used, in seconds", cpuSeconds),
    family("gauge", "process_resident_memory_bytes", "Resident memory", parseResidentBytes(status)),
    family("gauge", "process_virtual_memory_bytes", "Virtual memory", usage?.virtualBytes),
    family(
      "gauge",
      "process_virtual_memory_max_bytes",
      "Maximum amount of virtual memory available in bytes.",
      addressSpace === -1 ? unlimitedBytes : addressSpace,
    ),
    family("gauge", "process_open_fds", "Open file descriptors", openFiles),
    family(
      "gauge",
      "process_max_fds",
      "Maximum number of open file descriptors",
      limit === -1 ? Number.POSITIVE_INFINITY : limit,
    ),
    startTime(started),
    family(
      "counter",
      "process_network_receive_bytes_total",
      "Bytes received in its network namespace",
      sum(network.map(({ rxBytes }) => rxBytes)),
    ),
    family(
      "counter",
      "process_network_transmit_bytes_total",
      "Bytes sent in its network namespace",
      sum(network.map(({ txBytes }) => txBytes)),
    ),
  ];
}

/** @param seconds since 1970 */
export function startTime(seconds: number | undefined): Family {
  return family(
    "gauge",
    "process_start_time_seconds",
    "Start time of the process since unix epoch in seconds",
    seconds,
  );
}

function family(type: "counter" | "gauge", name: string, help: string, value: number | undefined): Family {
  const samples = value === undefined ? [] : [{ labels: [], value }];
  return { name, help, type, stability: undefined, labels: [], samples };
}
