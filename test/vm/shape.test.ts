import assert from "node:assert/strict";
import { readFileSync, statfsSync } from "node:fs";
import { test } from "node:test";
import { readMachineInfo } from "../../src/engine/machine.ts";
import { systemFiles } from "../../src/linux/files/files.ts";

const MiB = 2 ** 20;
const pageBytes = 2n * 2n ** 20n;

/** What was asked of run.sh. */
function asked(name: string): number {
  const value = process.env[`PODWRIGHT_VM_${name}`];
  assert.ok(value !== undefined, `PODWRIGHT_VM_${name} is not set`);
  return Number(value);
}

test("podwright sees the processors, memory, huge pages and swap space that the machine was given", async () => {
  const seen = await readMachineInfo(systemFiles, { version: 2 });
  assert.equal(seen.processors, asked("CPUS"));
  // The kernel keeps some for itself.
  const memory = Number(seen.memoryBytes) / MiB / asked("MEMORY_MIB");
  assert.ok(memory > 0.85 && memory <= 1, `${memory} of the memory`);
  assert.equal(seen.hugePages.get(pageBytes), BigInt(asked("HUGEPAGES")) * pageBytes);
  // Its first page describes it.
  assert.equal(Math.ceil(Number(seen.swapBytes) / MiB), asked("SWAP_MIB"));
});

test("its processors and memory are divided evenly among the NUMA nodes", async () => {
  const count = asked("NUMA");
  const nodes = (await systemFiles.list("/sys/devices/system/node")).filter(({ name }) => /^node\d+$/u.test(name));
  assert.equal(nodes.length, count);
  for (const { name } of nodes) {
    const text = (file: string): string => readFileSync(`/sys/devices/system/node/${name}/${file}`, "utf8");
    const [first = 0, last = first] = text("cpulist").trim().split("-").map(Number);
    assert.equal(last - first + 1, asked("CPUS") / count, `${name} has the processors ${text("cpulist")}`);
    const memory = Number(/MemTotal:\s+(\d+) kB/u.exec(text("meminfo"))?.[1]) / 1024 / (asked("MEMORY_MIB") / count);
    assert.ok(memory > 0.75 && memory <= 1, `${name} has ${memory} of its share of the memory`);
  }
});

test("the other disk is a file system of its own, of the size that was asked for", (context) => {
  const disk = process.env["PODWRIGHT_VM_DISK"];
  if (disk === undefined) return context.skip("run.sh was not asked for a disk (--disk)");
  assert.match(readFileSync("/proc/self/mounts", "utf8"), new RegExp(`^/dev/vd[a-z] ${disk} ext4 `, "mu"));
  const { blocks, bsize } = statfsSync(disk);
  const share = (blocks * bsize) / MiB / asked("DISK_MIB");
  assert.ok(share > 0.85 && share <= 1, `${share} of the size`);
});
