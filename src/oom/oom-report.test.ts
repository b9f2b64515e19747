import assert from "node:assert/strict";
import { test } from "node:test";
import { OomReader } from "./oom-report.ts";

const read = (lines: readonly string[]): unknown[] => {
  const reader = new OomReader();
  return lines.flatMap((line) => reader.read(line) ?? []);
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
    { pid: 78, name: "make", ofMachine: true, cgroup: "/system.slice/sshd.service" },
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
      [6, "a) (b", false, "/a"],
      [7, "", false, "/a"],
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
