import assert from "node:assert/strict";
import { test } from "node:test";
import { OomReader } from "./oom-report.ts";

const read = (lines: readonly string[]): unknown[] => {
  const reader = new OomReader();
  return lines.flatMap((text) => reader.read({ text, atMs: 0 }) ?? []);
};

test("a report of a cgroup at its limit names the process and its cgroup", () => {
  // Recorded from Linux 6.18.
  const victims = read([
    "tail invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "memory: usage 8192kB, limit 8192kB, failcnt 13",
    "Tasks state (memory values in pages):",
    "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=tail,pid=4736,uid=0",
    "Memory cgroup out of memory: Killed process 4736 (tail) total-vm:10548kB, anon-rss:7680kB, file-rss:1560kB, shmem-rss:0kB, UID:0 pgtables:56kB oom_score_adj:0",
  ]);
  assert.deepEqual(victims, [{ pid: 4736, name: "tail", ofMachine: false, cgroup: "/a/b" }]);
});

test("a report of a machine out of memory says so, whichever cgroup the process was in", () => {
  const victims = read([
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=cri-containerd-1.scope,mems_allowed=0-1,global_oom,task_memcg=/system.slice/sshd.service,task=sshd,pid=77,uid=0",
    "Out of memory: Killed process 77 (sshd) total-vm:1kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB, UID:0 pgtables:56kB oom_score_adj:0",
    "Out of memory (oom_kill_allocating_task): Killed process 78 (make) total-vm:1kB, anon-rss:1kB",
  ]);
  assert.deepEqual(victims, [
    { pid: 77, name: "sshd", ofMachine: true, cgroup: "/system.slice/sshd.service" },
    { pid: 78, name: "make", ofMachine: true, cgroup: undefined },
  ]);
});

test("all processes of a cgroup that is killed as a whole are reported, with that cgroup", () => {
  const victims = read([
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=one,pid=1001,uid=0",
    "Memory cgroup out of memory: Killed process 1001 (one) total-vm:1kB, anon-rss:1kB",
    "Tasks in /a are going to be killed due to memory.oom.group set",
    "Memory cgroup out of memory: Killed process 1002 (two) total-vm:1kB, anon-rss:1kB",
  ]);
  assert.deepEqual(victims, [
    { pid: 1001, name: "one", ofMachine: false, cgroup: "/a" },
    { pid: 1002, name: "two", ofMachine: false, cgroup: "/a" },
  ]);
});

const summaryOf = (cgroup: string, pid: number): string =>
  `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=${cgroup},task_memcg=${cgroup},task=x,pid=${pid},uid=0`;
const killOf = (pid: number): string =>
  `Memory cgroup out of memory: Killed process ${pid} (x) total-vm:1kB, anon-rss:1kB`;
const wholeOf = (cgroup: string): string => `Tasks in ${cgroup} are going to be killed due to memory.oom.group set`;

const cgroupsOf = (lines: readonly { readonly text: string; readonly atMs: number }[]): unknown[] => {
  const reader = new OomReader();
  return lines.flatMap((line) => reader.read(line) ?? []).map(({ pid, cgroup }) => [pid, cgroup]);
};

test("a kill without a summary of its own, which the kernel leaves out under many kills, is in no known cgroup", () => {
  const lines = [summaryOf("/a", 1), killOf(1), killOf(2), wholeOf("/b"), killOf(3)];
  const told = cgroupsOf(lines.map((text) => ({ text, atMs: 0 })));
  assert.deepEqual(told, [
    [1, "/a"],
    [2, undefined],
    [3, "/b"],
  ]);
});

test("after ten summaries in five seconds the next kill may be in another cgroup than the one killed as a whole", () => {
  const first = Array.from({ length: 10 }, (_, index) => ({ text: summaryOf("/a", 100 + index), atMs: 1000 + index }));
  const group = [killOf(109), wholeOf("/a"), killOf(200)];
  const soon = cgroupsOf([...first, ...group.map((text) => ({ text, atMs: 5000 }))]);
  assert.deepEqual(soon, [
    [109, "/a"],
    [200, undefined],
  ]);
  const late = cgroupsOf([...first, ...group.map((text) => ({ text, atMs: 7001 }))]);
  assert.deepEqual(late.at(-1), [200, "/a"]);
});

test("an announcement that another line interrupted ends the one before", () => {
  const lines = [summaryOf("/a", 1), killOf(1), wholeOf("/a"), "Tasks in ", "/b", killOf(2)];
  assert.deepEqual(cgroupsOf(lines.map((text) => ({ text, atMs: 0 }))).at(-1), [2, undefined]);
});

test("a process name cannot forge a report", () => {
  const victims = read([
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=,task_memcg=/b,pid=5,uid=0",
    "Memory cgroup out of memory: Killed process 5 (Out of memory: ) total-vm:1kB, anon-rss:1kB",
    "Memory cgroup out of memory: Killed process 6 (a) (b) total-vm:1kB, anon-rss:1kB",
    "Memory cgroup out of memory: Killed process 7 () total-vm:1kB, anon-rss:1kB",
  ]);
  assert.deepEqual(
    victims.map((victim) => Object.values(victim as object)),
    [
      [5, "Out of memory: ", false, "/a"],
      [6, "a) (b", false, undefined],
      [7, "", false, undefined],
    ],
  );
});

test("no other line counts as a report", () => {
  const lines = [
    "Killed process 5 (x) total-vm:1kB",
    "podw: Out of memory: Killed process 5 (x) total-vm:1kB",
    "oom_reaper: reaped process 4736 (tail), now anon-rss:0kB",
    "",
  ];
  assert.deepEqual(read(lines), []);
});
