import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podUid } from "../base/ids.ts";
import { FileError } from "../ports/files.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimKernelLog } from "../sim/kernel-log.ts";
import { OomRecord } from "./oom-record.ts";
import { watchOom } from "./oom-watcher.ts";

const web = {
  ...{ uid: podUid("uid-1"), name: "web", namespace: "default", sandboxes: [] },
  containers: [{ id: "c0ffee", name: "app" }],
} as unknown as PodStatus;
const below = "/kubepods/burstable/poduid-1";

/** Resolves once the kernel's messages are reported. */
type Told = () => Promise<void>;

async function withWatcher(
  work: (kernelLog: SimKernelLog, journal: MemoryRecorder, told: Told) => Promise<void>,
): Promise<void> {
  const [kernelLog, journal, clock] = [new SimKernelLog(), new MemoryRecorder(), new ManualClock()];
  const told = async (): Promise<void> => await clock.advance(10);
  await liveOnce({ clock, kernelLog, files: new MemoryFiles(clock), journal }, async () =>
    work(kernelLog, journal, told),
  );
}

interface Machine {
  readonly clock: ManualClock;
  readonly kernelLog: SimKernelLog;
  readonly files: MemoryFiles;
  readonly journal: MemoryRecorder;
}

/** One run of the watcher on a machine. It ends a second after the work. */
async function liveOnce({ clock, kernelLog, files, journal }: Machine, work: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const record = new OomRecord({ files, log: silentLog, directory: "/d" });
  const deps = { clock, kernelLog, record, journal, log: silentLog, pods: () => [web] };
  const watching = watchOom(deps, stop.signal);
  await clock.advance(10);
  await work();
  for (let left = 5; left > 0; left--) await clock.advance(1000);
  stop.abort(new Error("the test is over"));
  await watching;
}

test("a restart neither repeats kills nor loses those during downtime; a reboot starts over", async () => {
  const clock = new ManualClock();
  const machine = {
    clock,
    kernelLog: new SimKernelLog(),
    files: new MemoryFiles(clock),
    journal: new MemoryRecorder(),
  };
  const kill = (name: string): void =>
    machine.kernelLog.killed({ pid: 7, name, cgroup: "/system.slice/db.service", machine: true });
  const told = (): unknown[] => machine.journal.entries.map(({ data }) => data?.["process"]);
  await machine.files.makeDirectory("/proc/sys/kernel/random", 0o755);
  await machine.files.write("/proc/sys/kernel/random/boot_id", "one\n", 0o644);
  kill("before-the-first-life");
  await liveOnce(machine, async () => {
    kill("first");
    kill("second");
  });
  assert.deepEqual(told(), ["first", "second"]);
  kill("meanwhile");
  await liveOnce(machine, async () => {});
  assert.deepEqual(told(), ["first", "second", "meanwhile"]);
  await liveOnce(machine, async () => {});
  assert.deepEqual(told(), ["first", "second", "meanwhile"]);
  await machine.files.write("/proc/sys/kernel/random/boot_id", "two\n", 0o644);
  const rebooted = { ...machine, kernelLog: new SimKernelLog() };
  rebooted.kernelLog.killed({ pid: 8, name: "early", cgroup: "/system.slice/db.service", machine: true });
  await liveOnce(rebooted, async () => {});
  assert.deepEqual(told(), ["first", "second", "meanwhile", "early"]);
});

test("a kill in a container is reported with its pod, with either cgroup driver; one in another service is not", async () => {
  await withWatcher(async (kernelLog, journal, told) => {
    const scope = "/kubepods.slice/kubepods-poduid_1.slice/cri-containerd-c0ffee.scope/inner";
    for (const cgroup of [`${below}/c0ffee`, scope, `${below}/sandbox`, "/system.slice/db.service"]) {
      kernelLog.killed({ pid: 7, name: "tail", cgroup, machine: false });
    }
    await told();
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

test("on a machine out of memory every kill is reported, those in pods with the pod", async () => {
  await withWatcher(async (kernelLog, journal, told) => {
    kernelLog.killed({ pid: 7, name: "db", cgroup: "/system.slice/db.service", machine: true });
    kernelLog.killed({ pid: 8, name: "tail", cgroup: `${below}/c0ffee`, machine: true });
    await told();
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

test("if the kernel log cannot be read, that is logged once, and nothing else fails", async () => {
  const warnings: unknown[][] = [];
  const log = { ...silentLog, warn: (...said: unknown[]) => void warnings.push(said) };
  const kernelLog = {
    // oxlint-disable-next-line require-yield -- there is nothing to yield
    async *follow() {
      throw new FileError("EPERM", "/dev/kmsg", "EPERM: operation not permitted, open '/dev/kmsg'");
    },
  };
  const clock = new ManualClock();
  const record = new OomRecord({ files: new MemoryFiles(clock), log: silentLog, directory: "/d" });
  const deps = { clock, kernelLog, record, journal: new MemoryRecorder(), log, pods: () => [] };
  await watchOom(deps, new AbortController().signal);
  assert.deepEqual(warnings, [
    [
      "cannot read kernel messages; OOM kills will not be reported",
      { error: "EPERM: operation not permitted, open '/dev/kmsg'" },
    ],
  ]);
});
