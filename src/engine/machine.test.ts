import assert from "node:assert/strict";
import { test } from "node:test";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { readMachineInfo } from "./machine.ts";

async function machineWith(more: Readonly<Record<string, string | Uint8Array>>): ReturnType<typeof readMachineInfo> {
  const files = new MemoryFiles(new SimClock(0).incarnation());
  const all = {
    "/proc/meminfo": "MemTotal:        2048 kB\nSwapTotal:       1024 kB\n",
    "/proc/cpuinfo": "processor\t: 0\n\nprocessor\t: 1\n",
    "/proc/sys/kernel/osrelease": "6.8.0-45-generic\n",
    ...more,
  };
  for (const [path, text] of Object.entries(all)) {
    await files.makeDirectory(path.slice(0, path.lastIndexOf("/")), 0o755);
    await files.write(path, text, 0o644);
  }
  return await readMachineInfo(files, { version: 2 });
}

test("a machine reports its processors, memory, huge pages and kernel", async () => {
  const machine = await machineWith({
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "3\n",
    "/proc/sys/kernel/pid_max": "4194304\n",
    "/proc/sys/kernel/threads-max": "62000\n",
    "/sys/fs/cgroup/system.slice/memory.swap.max": "max",
  });
  assert.deepEqual(machine, {
    processors: 2,
    memoryBytes: 2048n * 1024n,
    pageBytes: 4096,
    cgroupVersion: 2,
    hugePageSizes: [2048n * 1024n],
    hugePages: new Map([[2048n * 1024n, 3n * 2048n * 1024n]]),
    swapBytes: 1024n * 1024n,
    pids: 62_000n,
    swapAccounting: true,
    kernelRelease: "6.8.0-45-generic",
    appArmor: false,
    seLinux: false,
    maskedPaths: [],
  });
});

test("the size of its pages is what the kernel tells programs", async () => {
  const pairs = new BigUint64Array([3n, 6n, 6n, 65_536n, 0n, 0n]);
  const machine = await machineWith({ "/proc/self/auxv": new Uint8Array(pairs.buffer) });
  assert.equal(machine.pageBytes, 65_536);
});

test("AppArmor and SELinux are detected from what the kernel shows when they are on", async () => {
  const appArmor = "/sys/module/apparmor/parameters/enabled";
  assert.equal((await machineWith({ [appArmor]: "Y\n" })).appArmor, true);
  assert.equal((await machineWith({ [appArmor]: "N\n" })).appArmor, false);
  assert.equal((await machineWith({ "/sys/fs/selinux/enforce": "0" })).seLinux, true);
});

test("the throttling counters of each processor that has them are masked", async () => {
  const counter = (name: string): string => `/sys/devices/system/cpu/${name}/thermal_throttle/core_throttle_count`;
  const { maskedPaths } = await machineWith({
    [counter("cpu0")]: "0",
    [counter("cpu1")]: "0",
    [counter("cpufreq")]: "0",
    "/sys/devices/system/cpu/cpu2/topology/core_id": "2",
  });
  assert.deepEqual(maskedPaths, [
    "/sys/devices/system/cpu/cpu0/thermal_throttle",
    "/sys/devices/system/cpu/cpu1/thermal_throttle",
  ]);
});
