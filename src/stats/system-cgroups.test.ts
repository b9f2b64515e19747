import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { RecordedStatsFiles } from "../../test/support/stats.ts";
import type { CgroupLayout } from "../ports/stats-files.ts";
import { runtimeWays } from "./runtime-ways.ts";
import { processSample, SystemCgroups } from "./system-cgroups.ts";

const processes = { ownPid: 7, list: async () => [] };
const settings = { kubelet: undefined, runtime: undefined, misc: "/system.slice", pods: "/kubepods", qosClasses: [] };

test("a cgroup's start is its creation, whatever is created in it later", async () => {
  const layouts: readonly CgroupLayout[] = [
    { version: 2, root: "/cg" },
    { version: 1, controllers: { memory: "/cg", cpu: "/cg-cpu", cpuacct: "/cg-cpu" } },
  ];
  for (const cgroups of layouts) {
    const files = new RecordedStatsFiles(cgroups);
    const file = cgroups.version === 2 ? "cgroup.events" : "cgroup.clone_children";
    files.changes.set("/cg/kubepods", 9000).set(`/cg/kubepods/${file}`, 5000).set("/cg/system.slice", 3000);
    files.texts.set("/proc/stat", "btime 100\n").set("/proc/7/cgroup", "0::/own\n1:memory:/own\n");
    const system = new SystemCgroups(
      { clock: new ManualClock(0), files, processes },
      { ...settings, runtimeProgram: "containerd", startedMs: 4000 },
    );
    const started = (await system.find()).map(({ name, startedMs }) => [name, startedMs]);
    assert.deepEqual(started, [
      ["pods", 5000],
      ["kubelet", 4000],
      ["misc", 3000],
    ]);
  }
});

test("the runtime is found by its process, whose name may differ from the runtime's", async () => {
  for (const [runtime, program] of [
    ["containerd", "containerd"],
    ["cri-o", "crio"],
    ["docker", "dockerd"],
  ] as const) {
    const files = new RecordedStatsFiles({ version: 2, root: "/cg" });
    files.texts.set("/proc/9/cgroup", "0::/system.slice/runtime.service\n").set("/proc/stat", "btime 100\n");
    const list = async () => [
      { pid: 8, name: "conmon", arguments: [] },
      { pid: 9, name: program, arguments: [] },
    ];
    const system = new SystemCgroups(
      { clock: new ManualClock(0), files, processes: { ownPid: 7, list } },
      { ...settings, runtimeProgram: runtimeWays(runtime).program, startedMs: 4000 },
    );
    const found = (await system.find()).find(({ name }) => name === "runtime");
    assert.deepEqual([found?.pid, found?.cgroup], [9, "/system.slice/runtime.service"], runtime);
  }
});

test("a process measured by itself has its memory in bytes, and none without any", () => {
  const stat = `7 (kubelet) S${" 1".repeat(40)}`;
  const sample = processSample(stat, "VmRSS:\t     128 kB\n", 5);
  assert.deepEqual([sample?.timeMs, sample?.memory?.rss], [5, 128 * 1024]);
  assert.equal(processSample(stat, undefined, 5), undefined);
});

test("processes are listed again only when a known runtime is gone", async () => {
  const files = new RecordedStatsFiles({ version: 2, root: "/cg" });
  files.texts.set("/proc/stat", "btime 100\n");
  for (const pid of [7, 9, 19, 29]) files.texts.set(`/proc/${pid}/cgroup`, `0::/runtime-${pid}\n`);
  let running = [9];
  let reused: number | undefined;
  let lists = 0;
  const list = async () => {
    lists++;
    return running.map((pid) => ({ pid, name: "containerd", arguments: [] }));
  };
  const clock = new ManualClock(0);
  const system = new SystemCgroups(
    { clock, files, processes: { ownPid: 7, list } },
    { ...settings, runtimeProgram: "containerd", startedMs: 4000 },
  );
  const found = async (): Promise<number | undefined> => {
    for (const pid of [9, 19, 29]) {
      if (running.includes(pid)) files.texts.set(`/proc/${pid}/comm`, "containerd\n");
      else if (pid === reused) files.texts.set(`/proc/${pid}/comm`, "sh\n");
      else files.texts.delete(`/proc/${pid}/comm`);
    }
    await clock.advance(60_001);
    return (await system.find()).find(({ name }) => name === "runtime")?.pid;
  };
  assert.deepEqual([await found(), await found(), lists], [9, 9, 1]);
  // A restarted runtime; its ID may have gone to another program.
  running = [19];
  assert.deepEqual([await found(), await found(), lists], [19, 19, 2]);
  running = [29];
  reused = 19;
  assert.deepEqual([await found(), lists], [29, 3]);
  reused = undefined;
  // Several: none is known to be podwright's, until one is left.
  running = [9, 19];
  assert.deepEqual([await found(), await found(), lists], [undefined, undefined, 4]);
  running = [19];
  assert.deepEqual([await found(), lists], [19, 5]);
});
