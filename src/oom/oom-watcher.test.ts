import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { settle } from "../../test/support/manual-clock.ts";
import { podUid } from "../base/ids.ts";
import { FileError } from "../ports/files.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { SimKernelLog } from "../sim/kernel-log.ts";
import { watchOom } from "./oom-watcher.ts";

const web = {
  ...{ uid: podUid("uid-1"), name: "web", namespace: "default", sandboxes: [] },
  containers: [{ id: "c0ffee", name: "app" }],
} as unknown as PodStatus;
const below = "/kubepods/burstable/poduid-1";

async function withWatcher(work: (kernelLog: SimKernelLog, journal: MemoryRecorder) => Promise<void>): Promise<void> {
  const [kernelLog, journal, stop] = [new SimKernelLog(), new MemoryRecorder(), new AbortController()];
  const watching = watchOom({ kernelLog, journal, log: silentLog, pods: () => [web] }, stop.signal);
  await settle();
  await work(kernelLog, journal);
  stop.abort(new Error("the test is over"));
  await watching;
}

test("a process of a container is told with its pod, whichever driver named the cgroup; other services' are not", async () => {
  await withWatcher(async (kernelLog, journal) => {
    const scope = "/kubepods.slice/kubepods-poduid_1.slice/cri-containerd-c0ffee.scope/inner";
    for (const cgroup of [`${below}/c0ffee`, scope, `${below}/sandbox`, "/system.slice/db.service"]) {
      kernelLog.killed({ pid: 7, name: "tail", cgroup, machine: false });
    }
    await settle();
    assert.deepEqual(
      journal.entries.map(({ what, pod, container, message }) => [what, pod?.name, container, message]),
      [`${below}/c0ffee`, scope, `${below}/sandbox`].map((cgroup, index) => [
        "OOMKilling",
        "web",
        index === 2 ? undefined : "app",
        `the kernel killed process tail: the cgroup ${cgroup} was at its memory limit`,
      ]),
    );
  });
});

test("of a machine without memory every process is told, of pods with the pod", async () => {
  await withWatcher(async (kernelLog, journal) => {
    kernelLog.killed({ pid: 7, name: "db", cgroup: "/system.slice/db.service", machine: true });
    kernelLog.killed({ pid: 8, name: "tail", cgroup: `${below}/c0ffee`, machine: true });
    await settle();
    const message = (name: string, pid: number): string =>
      `the kernel killed process ${name} (pid ${pid}): the machine was out of memory`;
    assert.deepEqual(
      journal.entries.map(({ what, pod, container, message: said, data }) => [
        ...[what, pod?.name, container, said, data?.["nodeMessage"]],
      ]),
      [
        ["SystemOOM", undefined, undefined, message("db", 7), "System OOM encountered, victim process: db, pid: 7"],
        ["SystemOOM", "web", "app", message("tail", 8), "System OOM encountered, victim process: tail, pid: 8"],
      ],
    );
  });
});

test("where the kernel's messages can't be read that is said once, and all else goes on", async () => {
  const warnings: unknown[][] = [];
  const log = { ...silentLog, warn: (...said: unknown[]) => void warnings.push(said) };
  const kernelLog = {
    // oxlint-disable-next-line require-yield -- there is nothing to yield
    async *follow() {
      throw new FileError("EPERM", "/dev/kmsg", "EPERM: operation not permitted, open '/dev/kmsg'");
    },
  };
  await watchOom({ kernelLog, journal: new MemoryRecorder(), log, pods: () => [] }, new AbortController().signal);
  assert.deepEqual(warnings, [
    [
      "cannot read kernel messages; OOM kills will not be reported",
      { error: "EPERM: operation not permitted, open '/dev/kmsg'" },
    ],
  ]);
});
