import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedCgroup } from "../../test/support/stats.ts";
import { cgroupFilePaths, cgroupSample } from "./cgroup-files.ts";

const hierarchies = {
  version: 1,
  controllers: { cpu: "/c/cpu", cpuacct: "/c/cpuacct", memory: "/c/memory", pids: "/c/pids", blkio: "/c/blkio" },
} as const;

test("a recorded v1 cgroup gives exactly the values in its files", () => {
  assert.deepEqual(cgroupSample(1, recordedCgroup(1), 1234), {
    timeMs: 1234,
    cpu: {
      usageNanoseconds: 220_619_592,
      userNanoseconds: 70_000_000,
      systemNanoseconds: 140_000_000,
      throttling: {
        periods: 17,
        throttledPeriods: 1,
        throttledNanoseconds: 0,
        burstPeriods: 0,
        burstNanoseconds: 0,
      },
    },
    memory: {
      usage: 31_207_424,
      workingSet: 31_207_424 - 86_016,
      rss: 114_688,
      cache: 30_097_408,
      mappedFile: 0,
      activeFile: 30_011_392,
      inactiveFile: 86_016,
      swap: 0,
      pageFaults: 425,
      majorPageFaults: 2,
      limit: 67_108_864,
      swapLimit: 100_663_296 - 67_108_864,
      details: {
        kernel: 995_328,
        peak: 31_555_584,
        limitHits: 0,
        oomKills: 0,
        reservation: 0,
        swapLimit: 100_663_296,
      },
    },
    io: {
      devices: [{ major: 8, minor: 0, readBytes: 90_430_464, writtenBytes: 299_008_000, reads: 8950, writes: 1252 }],
    },
    tasks: { current: 2, limit: 100 },
    cpuLimits: { shares: 512, quota: 20_000, period: 100_000 },
    pids: [20_411, 20_484],
  });
});

test("page faults of a v1 cgroup are its own, and everything else includes its children", () => {
  const figures = { rss: 1, total_rss: 10, pgfault: 2, pgmajfault: 3, total_pgfault: 20, total_pgmajfault: 30 };
  const stat = Object.entries(figures).map(([name, value]) => `${name} ${value}\n`);
  const { memory } = cgroupSample(1, new Map([...recordedCgroup(1), ["memory.stat", stat.join("")]]), 0);
  assert.deepEqual([memory?.rss, memory?.pageFaults, memory?.majorPageFaults], [10, 2, 3]);
});

test("a recorded v2 cgroup gives exactly the values in its files, with its pressure", () => {
  const waited = { total: 10_871, avg10: 0, avg60: 0, avg300: 0 };
  const none = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
  assert.deepEqual(cgroupSample(2, recordedCgroup(2), 1234), {
    timeMs: 1234,
    cpu: {
      usageNanoseconds: 220_619_000,
      userNanoseconds: 79_040_000,
      systemNanoseconds: 141_578_000,
      throttling: {
        periods: 17,
        throttledPeriods: 1,
        throttledNanoseconds: 1_234_000,
        burstPeriods: 2,
        burstNanoseconds: 55_000,
      },
      pressure: {
        some: { total: 744_175, avg10: 3.57, avg60: 1.06, avg300: 0.24 },
        full: { total: 743_980, avg10: 3.57, avg60: 1.06, avg300: 0.24 },
      },
    },
    memory: {
      usage: 31_207_424,
      workingSet: 31_207_424 - 14_999_552,
      rss: 114_688,
      cache: 30_097_408,
      mappedFile: 4096,
      activeFile: 15_097_856,
      inactiveFile: 14_999_552,
      swap: 4096,
      pageFaults: 1301,
      majorPageFaults: 3,
      limit: 67_108_864,
      swapLimit: 33_554_432,
      pressure: { some: none, full: none },
      details: {
        kernel: 995_328,
        peak: 31_555_584,
        limitHits: 0,
        oomKills: 1,
        reservation: 0,
        swapLimit: 33_554_432,
      },
    },
    io: {
      pressure: { some: waited, full: { ...waited, total: 10_851 } },
      devices: [
        { major: 8, minor: 16, readBytes: 1_459_200, writtenBytes: 314_773_504, reads: 192, writes: 353 },
        { major: 8, minor: 0, readBytes: 90_430_464, writtenBytes: 299_008_000, reads: 8950, writes: 1252 },
      ],
    },
    tasks: { current: 2, limit: 100 },
    // Weight 20 is what 512 shares become; converting back is as exact as integers allow.
    cpuLimits: { shares: 500, quota: 20_000, period: 100_000 },
    pids: [20_411, 20_484],
  });
});

test("a cgroup without limits has none, and values of a missing controller are omitted", () => {
  const v1 = cgroupSample(1, new Map([...recordedCgroup(1), ["memory.limit_in_bytes", "9223372036854771712\n"]]), 0);
  assert.equal(v1.memory?.limit, undefined);
  assert.equal(v1.memory?.swapLimit, undefined);
  const v2 = new Map([
    ...recordedCgroup(2),
    ["memory.max", "max\n"],
    ["pids.max", "max\n"],
    ["cpu.max", "max 100000\n"],
  ]);
  v2.delete("memory.swap.max");
  v2.delete("cpu.pressure");
  const sample = cgroupSample(2, v2, 0);
  assert.deepEqual(
    [
      sample.memory?.limit,
      sample.memory?.swapLimit,
      sample.tasks?.limit,
      sample.cpuLimits?.quota,
      sample.cpu?.pressure,
    ],
    [undefined, undefined, undefined, undefined, undefined],
  );
  const bare = cgroupSample(2, new Map([["cpu.stat", "usage_usec 5\n"]]), 0);
  assert.equal(bare.cpu?.usageNanoseconds, 5000);
  assert.equal(bare.memory, undefined);
  assert.equal(bare.tasks, undefined);
});

test("hits of the memory limit are counted on v1, and on v2 there are none, as cAdvisor has it", () => {
  const v1 = new Map([...recordedCgroup(1), ["memory.failcnt", "3\n"]]);
  assert.equal(cgroupSample(1, v1, 0).memory?.details?.limitHits, 3);
  assert.match(recordedCgroup(2).get("memory.events") ?? "", /^max 7$/mu);
  assert.equal(cgroupSample(2, recordedCgroup(2), 0).memory?.details?.limitHits, 0);
});

test("a v2 cgroup whose peak of memory the kernel does not count has 0 for it", () => {
  const old = recordedCgroup(2);
  old.delete("memory.peak");
  assert.equal(cgroupSample(2, old, 0).memory?.details?.peak, 0);
  const root = new Map([["memory.stat", "anon 5\nfile 6\n"]]);
  assert.equal(cgroupSample(2, root, 0, true).memory?.details?.peak, 0);
});

test("each file is read in its controller's hierarchy, and only as deep as required", () => {
  const paths = cgroupFilePaths(hierarchies, "/kubepods/pod1", "resources").map(({ path }) => path);
  assert.deepEqual(paths, [
    "/c/cpuacct/kubepods/pod1/cpuacct.usage",
    "/c/memory/kubepods/pod1/memory.usage_in_bytes",
    "/c/memory/kubepods/pod1/memory.stat",
    "/c/memory/kubepods/pod1/memory.limit_in_bytes",
    "/c/memory/kubepods/pod1/memory.memsw.limit_in_bytes",
  ]);
  assert.equal(cgroupFilePaths({ version: 2, root: "/c" }, "/", "resources")[0]?.path, "/c/cpu.stat");
  const counts = (["resources", "summary", "everything"] as const).map((depth) => {
    return cgroupFilePaths({ version: 2, root: "/c" }, "/a", depth).length;
  });
  assert.deepEqual(counts, [6, 10, 18]);
});
