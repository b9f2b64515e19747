import assert from "node:assert/strict";
import { test } from "node:test";
import { RecordedStatsFiles, recordedCgroup } from "../../test/support/stats.ts";
import { cadvisorFamilies } from "./cadvisor-metrics.ts";
import { cadvisorView } from "./cadvisor-view.ts";
import { cgroupSample } from "./cgroup-files.ts";
import type { CgroupSample } from "./cgroup-sample.ts";
import { parseIoStat } from "./cgroup-v2.ts";

const disks = `   8       0 sda 900 9 9000 90 800 8 8000 80 0 70 60
   8       1 sda1 100 20 3000 4500 500 60 7000 8250 2 9125 10500
 253       0 dm-0 1 2 3 4 5 6 7 8 9 10 11
`;

/** Rows of the disk families as `family cgroup label,label` → value. */
async function rows(root: CgroupSample, pod: CgroupSample): Promise<Record<string, number>> {
  const files = new RecordedStatsFiles({ version: 2, root: "/sys/fs/cgroup" });
  files.texts.set("/proc/diskstats", disks);
  const machine = { bootedMs: 0, swapTotalBytes: 0, swapFreeBytes: 0, network: undefined };
  const node = {
    timeMs: 0,
    machine: { ...machine, sample: root, tasks: 0, maxTasks: 0, ioPressure: undefined },
    system: [{ name: "pods", cgroup: "/kubepods", startedMs: 0, sample: pod } as const],
    pods: [],
  };
  const families = cadvisorFamilies(await cadvisorView(files, node, { fileSystems: ["/"], version: "1" }));
  return Object.fromEntries(
    families
      .filter(({ name }) => /^container_(fs|blkio)_/u.test(name))
      .flatMap(({ name, samples }) => {
        return samples.map((sample) => {
          assert.ok("value" in sample, name);
          return [`${name} ${sample.labels[1]} ${sample.labels.slice(6).join()}`, sample.value];
        });
      }),
  );
}

test("the machine's mounted disks are reported from the kernel's counters, in seconds", async () => {
  const nothing = { timeMs: 0, pids: [], io: { devices: [] } };
  const shown = await rows(nothing, nothing);
  const own = Object.fromEntries(
    Object.entries(shown).map(([name, value]) => [name.replace(/^container_(.*) \/ \/dev\/sda1/u, "$1"), value]),
  );
  assert.deepEqual(own, {
    "blkio_device_usage_total,8,1,Read": 3000 * 512,
    "blkio_device_usage_total,8,1,Write": 7000 * 512,
    fs_inodes_free: 60,
    fs_inodes_total: 100,
    fs_io_current: 2,
    fs_io_time_seconds_total: 9.125,
    fs_io_time_weighted_seconds_total: 10.5,
    fs_limit_bytes: 1000,
    fs_read_seconds_total: 4.5,
    fs_reads_bytes_total: 3000 * 512,
    fs_reads_merged_total: 20,
    fs_reads_total: 100,
    fs_sector_reads_total: 3000,
    fs_sector_writes_total: 7000,
    fs_usage_bytes: 500,
    fs_write_seconds_total: 8.25,
    fs_writes_bytes_total: 7000 * 512,
    fs_writes_merged_total: 60,
    fs_writes_total: 500,
  });
});

test("other cgroups are reported with the counters in io.stat, and without zeros for the rest", async () => {
  const pod = cgroupSample(2, recordedCgroup(2), 0);
  const shown = await rows({ timeMs: 0, pids: [], io: { devices: [] } }, pod);
  const own = Object.entries(shown).filter(([name]) => name.includes(" /kubepods "));
  assert.deepEqual(Object.fromEntries(own), {
    "container_blkio_device_usage_total /kubepods /dev/sda,8,0,Read": 90_430_464,
    "container_blkio_device_usage_total /kubepods /dev/sda,8,0,Write": 299_008_000,
    "container_blkio_device_usage_total /kubepods 8:16,8,16,Read": 1_459_200,
    "container_blkio_device_usage_total /kubepods 8:16,8,16,Write": 314_773_504,
    "container_fs_reads_bytes_total /kubepods /dev/sda": 90_430_464,
    "container_fs_reads_bytes_total /kubepods 8:16": 1_459_200,
    "container_fs_reads_total /kubepods /dev/sda": 8950,
    "container_fs_reads_total /kubepods 8:16": 192,
    "container_fs_writes_bytes_total /kubepods /dev/sda": 299_008_000,
    "container_fs_writes_bytes_total /kubepods 8:16": 314_773_504,
    "container_fs_writes_total /kubepods /dev/sda": 1252,
    "container_fs_writes_total /kubepods 8:16": 353,
  });
});

test("I/O cost is reported where the kernel counts it", async () => {
  const text =
    "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0 cost.vrate=100.00 cost.usage=2500000 cost.wait=7 cost.indebt=0 cost.indelay=1\n" +
    "8:16 cost.usage=9\n8:32 \n";
  const io = { devices: parseIoStat(text) };
  const shown = await rows({ timeMs: 0, pids: [], io: { devices: [] } }, { timeMs: 0, pids: [], io });
  const costs = Object.entries(shown).filter(([name]) => name.includes("io_cost"));
  assert.deepEqual(Object.fromEntries(costs), {
    "container_fs_io_cost_indebt_seconds_total /kubepods /dev/sda": 0,
    "container_fs_io_cost_indelay_seconds_total /kubepods /dev/sda": 0.000_001,
    "container_fs_io_cost_usage_seconds_total /kubepods /dev/sda": 2.5,
    "container_fs_io_cost_usage_seconds_total /kubepods 8:16": 0.000_009,
    "container_fs_io_cost_wait_seconds_total /kubepods /dev/sda": 0.000_007,
  });
  assert.equal(shown["container_fs_reads_total /kubepods 8:16"], undefined, "nothing was read");
  assert.equal(shown["container_fs_reads_total /kubepods /dev/sda"], 3);
});

test("a disk that the root cgroup also counts is reported once", async () => {
  const devices = parseIoStat("8:1 rbytes=1 wbytes=2 rios=3 wios=4\n253:0 rbytes=1 wbytes=2 rios=3 wios=4\n");
  const shown = await rows({ timeMs: 0, pids: [], io: { devices } }, { timeMs: 0, pids: [] });
  assert.equal(shown["container_fs_reads_total / /dev/sda1"], 100);
  assert.equal(shown["container_fs_reads_total / /dev/dm-0"], 3, "not mounted: by the cgroup's count");
});
