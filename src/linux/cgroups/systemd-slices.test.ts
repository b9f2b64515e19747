import assert from "node:assert/strict";
import { test } from "node:test";
import type { CgroupResources, Cgroups } from "../../ports/cgroups.ts";
import { SystemdSlices, sliceProperties } from "./systemd-slices.ts";

const pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice";

/** Records the calls to systemd and the cgroup tree, in order. `refused`: methods that systemd rejects. */
function imitation({ refused = [], pids = [] }: { refused?: readonly string[]; pids?: readonly number[] } = {}): {
  readonly cgroups: SystemdSlices;
  readonly asked: string[];
} {
  const asked: string[] = [];
  const tree: Cgroups = {
    version: 2,
    exists: async () => true,
    missing: async () => [],
    apply: async (path: string, _resources: CgroupResources) => void asked.push(`write ${path}`),
    read: async () => assert.fail("nobody asks"),
    children: async () => [],
    pids: async () => [...pids],
    ownPids: async () => [],
    move: async () => new Map(),
    removeEmpty: async () => "refused",
    remove: async (path: string) => void asked.push(`remove ${path}`),
  };
  const run = async (program: string, words: readonly string[]) => {
    assert.equal(program, "busctl");
    const call = words.slice(words.indexOf("org.freedesktop.systemd1.Manager") + 1);
    asked.push(call.join(" "));
    const fails = refused.some((method) => method === call[0]);
    return { exitCode: fails ? 1 : 0, signal: undefined, stdout: "", stderr: fails ? `Call failed: ${call[0]}` : "" };
  };
  return { cgroups: new SystemdSlices(tree, { run }), asked };
}

test("a slice's limits become systemd properties, of either cgroup version", () => {
  const resources = {
    cpuShares: 102,
    cpuQuotaMicroseconds: 50_000,
    cpuPeriodMicroseconds: 100_000,
    memoryLimitBytes: 64 * 2 ** 20,
    pidsLimit: 100,
  };
  assert.deepEqual(sliceProperties(resources, 2), [
    ["CPUWeight", "t", "4"],
    ["CPUQuotaPeriodUSec", "t", "100000"],
    ["CPUQuotaPerSecUSec", "t", "500000"],
    ["MemoryMax", "t", "67108864"],
    ["TasksMax", "t", "100"],
  ]);
  const names = sliceProperties(resources, 1).map(([name]) => name);
  assert.deepEqual(names, ["CPUShares", "CPUQuotaPeriodUSec", "CPUQuotaPerSecUSec", "MemoryLimit", "TasksMax"]);
});

test("memory protection is set through systemd only on v2", () => {
  const resources = { memoryMinBytes: 4096, memoryLowBytes: 8192 };
  assert.deepEqual(sliceProperties(resources, 2), [
    ["MemoryMin", "t", "4096"],
    ["MemoryLow", "t", "8192"],
  ]);
  assert.deepEqual(sliceProperties(resources, 1), []);
});

test("no limit is systemd's infinity, and a quota between its steps is rounded up", () => {
  const none = sliceProperties({ cpuQuotaMicroseconds: -1, memoryLimitBytes: -1, pidsLimit: -1 }, 2);
  assert.deepEqual([...new Set(none.map(([, , value]) => value))], ["18446744073709551615"]);
  const [quota] = sliceProperties({ cpuQuotaMicroseconds: 33_333 }, 2);
  assert.deepEqual(quota, ["CPUQuotaPerSecUSec", "t", "340000"]);
  assert.deepEqual(sliceProperties({}, 2), []);
});

test("systemd gets the limits of a slice before its files are written", async () => {
  const { cgroups, asked } = imitation();
  await cgroups.apply(pod, { memoryLimitBytes: 1024 });
  assert.equal(asked.length, 2);
  assert.match(
    asked[0] ?? "",
    /^StartTransientUnit ssa\(sv\)a\(sa\(sv\)\) kubepods-burstable-pod1\.slice replace 7 Description s .* MemoryMax t 1024 0$/,
  );
  assert.equal(asked[1], `write ${pod}`);
});

test("a running slice is changed", async () => {
  const { cgroups, asked } = imitation({ refused: ["StartTransientUnit"] });
  await cgroups.apply(pod, { memoryLimitBytes: 1024 });
  assert.match(
    asked[1] ?? "",
    /^SetUnitProperties sba\(sv\) kubepods-burstable-pod1\.slice true 5 .*MemoryMax t 1024$/,
  );
  assert.equal(asked[2], `write ${pod}`);
});

test("when systemd refuses, no file is written, and both its answers are reported", async () => {
  const { cgroups, asked } = imitation({ refused: ["StartTransientUnit", "SetUnitProperties"] });
  await assert.rejects(cgroups.apply(pod, {}), /pod1\.slice .*StartTransientUnit.*SetUnitProperties/);
  assert.ok(!asked.includes(`write ${pod}`));
});

test("cgroups other than slices do not involve systemd", async () => {
  const { cgroups, asked } = imitation();
  await cgroups.apply("/kubepods/burstable/pod1", {});
  await cgroups.remove("/kubepods/burstable/pod1");
  assert.deepEqual(asked, ["write /kubepods/burstable/pod1", "remove /kubepods/burstable/pod1"]);
});

test("a slice is stopped and its cgroup removed, unless it has a process", async () => {
  const busy = imitation({ pids: [12] });
  await assert.rejects(busy.cgroups.remove(pod), { code: "EBUSY" });
  assert.deepEqual(busy.asked, []);

  const { cgroups, asked } = imitation({ refused: ["StopUnit"] });
  await cgroups.remove(pod);
  assert.deepEqual(asked, ["StopUnit ss kubepods-burstable-pod1.slice replace", `remove ${pod}`]);
});
