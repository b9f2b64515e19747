import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { cpuWeight, CgroupsV2, sharesOfWeight } from "./cgroups-v2.ts";
import { systemClock } from "../processes/clock.ts";
import { testDirectory, type TestDirectory } from "../processes/testing.ts";

const limits = ["cpu.weight", "cpu.max", "memory.max", "pids.max"];

/** Files as in the kernel's /kubepods/burstable/pod1, in a plain directory that keeps what is written. */
function imitation(): TestDirectory {
  const directory = testDirectory();
  for (const path of [".", "kubepods", "kubepods/burstable", "kubepods/burstable/pod1"]) {
    mkdirSync(directory.join(path), { recursive: true });
    writeFileSync(directory.join(path, "cgroup.controllers"), "cpuset cpu io memory hugetlb pids rdma misc\n");
    writeFileSync(directory.join(path, "cgroup.subtree_control"), path === "." ? "cpu memory\n" : "\n");
    writeFileSync(directory.join(path, "cpu.max"), "max 100000\n");
  }
  return directory;
}

const pod = "/kubepods/burstable/pod1";

test("shares become weights by KEP-2254's formula", () => {
  const known = [
    [2, 1],
    [102, 4],
    [512, 20],
    [1024, 39],
    [2048, 79],
    [262_144, 10_000],
  ] as const;
  for (const [shares, weight] of known) assert.equal(cpuWeight(shares), weight, `${shares} shares`);
  assert.equal(cpuWeight(0), 1);
  assert.equal(cpuWeight(1_000_000), 10_000);
});

test("missing controllers are enabled from the root to the parent, not in the cgroup itself", async () => {
  using directory = imitation();
  await new CgroupsV2(systemClock, directory.path).apply(pod, {});
  const enabled = (path: string): string => readFileSync(directory.join(path, "cgroup.subtree_control"), "utf8");
  assert.equal(enabled("."), "+cpuset +hugetlb +io +pids");
  assert.equal(enabled("kubepods"), "+cpu +cpuset +hugetlb +io +memory +pids");
  assert.equal(enabled("kubepods/burstable"), "+cpu +cpuset +hugetlb +io +memory +pids");
  assert.equal(enabled("kubepods/burstable/pod1"), "\n");
});

test("limits are written in v2's format, and omitted ones stay unchanged", async () => {
  using directory = imitation();
  const cgroups = new CgroupsV2(systemClock, directory.path);
  for (const file of limits) writeFileSync(directory.join("kubepods/burstable/pod1", file), "untouched");
  const values = (): string[] =>
    limits.map((file) => readFileSync(directory.join("kubepods/burstable/pod1", file), "utf8"));

  await cgroups.apply(pod, { cpuShares: 1024 });
  assert.deepEqual(values(), ["39", "untouched", "untouched", "untouched"]);
  await cgroups.apply(pod, {
    cpuQuotaMicroseconds: 50_000,
    cpuPeriodMicroseconds: 100_000,
    memoryLimitBytes: 2 ** 40,
    pidsLimit: 1024,
  });
  assert.deepEqual(values(), ["39", "50000 100000", "1099511627776", "1024"]);
  await cgroups.apply(pod, { cpuQuotaMicroseconds: -1, memoryLimitBytes: -1, pidsLimit: -1 });
  assert.deepEqual(values(), ["39", "max", "max", "max"]);
});

test("a period alone keeps the current quota", async () => {
  using directory = imitation();
  writeFileSync(directory.join("kubepods/burstable/pod1/cpu.max"), "25000 100000\n");
  await new CgroupsV2(systemClock, directory.path).apply(pod, { cpuPeriodMicroseconds: 50_000 });
  assert.equal(readFileSync(directory.join("kubepods/burstable/pod1/cpu.max"), "utf8"), "25000 50000");
});

test("children are the directories only, and processes of all of them count once", async () => {
  using directory = imitation();
  const cgroups = new CgroupsV2(systemClock, directory.path);
  mkdirSync(directory.join("kubepods/besteffort"));
  writeFileSync(directory.join("kubepods/cgroup.procs"), "7\n");
  writeFileSync(directory.join("kubepods/burstable/cgroup.procs"), "");
  writeFileSync(directory.join("kubepods/burstable/pod1/cgroup.procs"), "12\n0\n7\n");
  assert.deepEqual((await cgroups.children("/kubepods")).toSorted(), ["besteffort", "burstable"]);
  assert.deepEqual(await cgroups.pids("/kubepods"), [7, 12]);
  assert.equal(await cgroups.exists("/kubepods/besteffort"), true);
  assert.equal(await cgroups.exists("/kubepods/other"), false);
});

test("limits are read in v1's terms, with the memory usage", async () => {
  using directory = imitation();
  const files = { "cpu.weight": "39", "cpu.max": "50000 100000", "memory.max": "max", "memory.current": "4096" };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(directory.join("kubepods/burstable/pod1", name), `${text}\n`);
  }
  assert.deepEqual(await new CgroupsV2(systemClock, directory.path).read(pod), {
    resources: {
      cpuShares: sharesOfWeight(39),
      cpuQuotaMicroseconds: 50_000,
      cpuPeriodMicroseconds: 100_000,
      memoryLimitBytes: -1,
    },
    memoryUsageBytes: 4096,
  });
});

test("weight and shares convert into each other", () => {
  for (let weight = 1; weight <= 10_000; weight++) assert.equal(cpuWeight(sharesOfWeight(weight)), weight);
});

test("huge pages in use and reserved ones are limited, for the sizes that the kernel counts", async () => {
  using directory = imitation();
  const files = ["hugetlb.2MB.max", "hugetlb.2MB.rsvd.max", "hugetlb.64KB.max"].map((name) => {
    return directory.join("kubepods/burstable/pod1", name);
  });
  for (const file of files) writeFileSync(file, "max\n");
  const hugePageLimitBytes = { "64KB": 65_536, "2MB": 4096, "1GB": 0 };
  await new CgroupsV2(systemClock, directory.path).apply(pod, { hugePageLimitBytes });
  const values = files.map((file) => readFileSync(file, "utf8"));
  assert.deepEqual(values, ["4096", "4096", "65536"], "older kernels count no reserved pages");
  const names = readdirSync(directory.join("kubepods/burstable/pod1")).filter((name) => name.startsWith("hugetlb"));
  assert.equal(names.length, files.length, "none is created");
});

test("memory is protected on request, and processes are moved into a cgroup that is created for them", async () => {
  using directory = imitation();
  const cgroups = new CgroupsV2(systemClock, directory.path);
  for (const file of ["memory.min", "memory.low", "cgroup.procs"]) writeFileSync(directory.join("kubepods", file), "");
  await cgroups.apply("/kubepods", { memoryMinBytes: 8192, memoryLowBytes: 0 });
  const value = (file: string): string => readFileSync(directory.join("kubepods", file), "utf8");
  assert.deepEqual([value("memory.min"), value("memory.low")], ["8192", "0"]);
  assert.deepEqual([...(await cgroups.move([41, 42], "/kubepods"))], []);
  assert.equal(value("cgroup.procs"), "42", "one process a write, as the kernel wants it");
  assert.deepEqual(await cgroups.ownPids("/kubepods"), [42]);
});

test("a cgroup's missing controllers are reported, among those that limit pods and that the machine has", async () => {
  using directory = imitation();
  const cgroups = new CgroupsV2(systemClock, directory.path);
  assert.deepEqual(await cgroups.missing("/kubepods"), []);
  writeFileSync(directory.join("kubepods/cgroup.controllers"), "cpu io memory pids\n");
  assert.deepEqual(await cgroups.missing("/kubepods"), ["cpuset", "hugetlb"]);
  writeFileSync(directory.join("cgroup.controllers"), "cpuset cpu memory pids\n");
  assert.deepEqual(await cgroups.missing("/kubepods"), ["cpuset"]);
  await assert.rejects(cgroups.missing("/nowhere"), { code: "ENOENT" });
});
