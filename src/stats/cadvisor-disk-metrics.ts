import type { CgroupView, ViewMetric, ViewValue } from "./view-metric.ts";
import type { DeviceSample, IoCost } from "./cgroup-sample.ts";
import { type DiskCounters, deviceNumber } from "./disk-counters.ts";

/** I/O of a cgroup by device. */
function io(name: string, help: string, pick: (device: DeviceSample) => number | undefined): ViewMetric {
  return ofDevices({ name: `container_fs_${name}_total`, help, type: "counter" }, ({ sample, devices }) => {
    return (sample.io?.devices ?? []).flatMap((device) => {
      const value = pick(device);
      return value === undefined ? [] : [{ labels: [deviceName(devices, device)], value }];
    });
  });
}

function cost(name: keyof IoCost, help: string): ViewMetric {
  return io(`io_cost_${name}_seconds`, help, ({ cost: of }) => inSeconds(of?.[name], 1e6));
}

/** I/O of the machine by mounted disk: the kernel has no such counters for cgroups. */
function disk(name: string, help: string, pick: (disk: DiskCounters) => number): ViewMetric {
  const type = name.endsWith("_total") ? "counter" : "gauge";
  return ofDevices({ name: `container_fs_${name}`, help, type }, ({ disks = [], devices }) => {
    return disks.map((each) => ({ labels: [deviceName(devices, each)], value: pick(each) }));
  });
}

function ofDevices(
  what: Pick<ViewMetric, "name" | "help" | "type">,
  values: (view: CgroupView) => readonly ViewValue[],
): ViewMetric {
  return { ...what, labels: ["device"], dated: true, values };
}

function inSeconds(value: number | undefined, parts: number): number | undefined {
  return value === undefined ? undefined : value / parts;
}

function deviceName(devices: ReadonlyMap<string, string>, device: Pick<DeviceSample, "major" | "minor">): string {
  const number = deviceNumber(device);
  const name = devices.get(number);
  return name === undefined ? number : `/dev/${name}`;
}

const usage: ViewMetric = {
  name: "container_blkio_device_usage_total",
  help: "Bytes read from and written to the device",
  type: "counter",
  labels: ["device", "major", "minor", "operation"],
  dated: true,
  values: ({ sample, devices }) =>
    (sample.io?.devices ?? []).flatMap((device) => {
      const labels = [deviceName(devices, device), `${device.major}`, `${device.minor}`];
      const operations = { Read: device.readBytes, Write: device.writtenBytes };
      return Object.entries(operations).flatMap(([operation, value]) => {
        return value === undefined ? [] : [{ labels: [...labels, operation], value }];
      });
    }),
};

/** Reads from and writes to disks. */
export const diskMetrics: readonly ViewMetric[] = [
  io("reads_bytes", "Bytes read from the device", ({ readBytes }) => readBytes),
  io("reads", "Reads from the device", ({ reads }) => reads),
  io("writes_bytes", "Bytes written to the device", ({ writtenBytes }) => writtenBytes),
  io("writes", "Writes to the device", ({ writes }) => writes),
  disk("sector_reads_total", "Sectors of 512 bytes read from the device", ({ sectorsRead }) => sectorsRead),
  disk("sector_writes_total", "Sectors of 512 bytes written to the device", ({ sectorsWritten }) => sectorsWritten),
  disk("reads_merged_total", "Merged reads", ({ readsMerged }) => readsMerged),
  disk("writes_merged_total", "Merged writes", ({ writesMerged }) => writesMerged),
  disk("read_seconds_total", "Total read time", ({ readMs }) => readMs / 1000),
  disk("write_seconds_total", "Total write time", ({ writeMs }) => writeMs / 1000),
  disk("io_current", "I/O requests in progress", ({ inProgress }) => inProgress),
  disk("io_time_seconds_total", "Time spent doing I/O", ({ ioMs }) => ioMs / 1000),
  disk("io_time_weighted_seconds_total", "Weighted I/O time", ({ weightedMs }) => weightedMs / 1000),
  cost("usage", "Device time used, by the cost model"),
  cost("wait", "Time requests waited for device share"),
  cost("indebt", "Time in debt for requests that could not wait"),
  cost("indelay", "Time tasks were delayed for their debt"),
  usage,
];
