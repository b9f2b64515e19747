import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podUid } from "../base/ids.ts";
import { FileError } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
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
  readonly log?: Logger;
  /** Pods as observed, after a while. Undefined: at once. */
  readonly found?: { readonly pods: () => readonly PodStatus[]; readonly allKnown: Promise<void> };
}

/** A machine whose boot has a name. */
async function booted(): Promise<Machine> {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  await files.makeDirectory("/proc/sys/kernel/random", 0o755);
  await files.write("/proc/sys/kernel/random/boot_id", "one\n", 0o644);
  return { clock, kernelLog: new SimKernelLog(), files, journal: new MemoryRecorder() };
}

/** One run of the watcher on a machine. It ends some seconds after the work, or is killed at once. */
async function liveOnce(
  { clock, kernelLog, files, journal, log = silentLog, found }: Machine,
  work: () => Promise<void>,
  isKilled = false,
): Promise<void> {
  const stop = new AbortController();
  let isAlive = true;
  const disk = {
    stat: files.stat.bind(files),
    read: files.read.bind(files),
    rename: files.rename.bind(files),
    makeDirectory: files.makeDirectory.bind(files),
    writeAtomic: async (...of: Parameters<MemoryFiles["writeAtomic"]>) => {
      if (isAlive) await files.writeAtomic(...of);
    },
  };
  const record = new OomRecord({ files: disk, log, directory: "/d", journaled: () => journal.entries });
  const { pods, allKnown } = found ?? { pods: () => [web], allKnown: Promise.resolve() };
  const deps = { clock, kernelLog, record, journal, log: silentLog, pods, allKnown: async () => await allKnown };
  const watching = watchOom(deps, stop.signal);
  await clock.advance(10);
  await work();
  for (let left = isKilled ? 0 : 5; left > 0; left--) await clock.advance(1000);
  // A dead process writes nothing.
  isAlive = !isKilled;
  stop.abort(new Error("the test is over"));
  await watching;
}

function killOn({ kernelLog }: Machine, name: string): void {
  kernelLog.killed({ pid: 7, name, cgroup: "/system.slice/db.service", machine: true });
}

function toldOn({ journal }: Machine): unknown[] {
  return journal.entries.map(({ data }) => data?.["process"]);
}

test("a restart neither repeats kills nor loses those during downtime; a reboot starts over", async () => {
  const machine = await booted();
  const kill = (name: string): void => killOn(machine, name);
  const told = (): unknown[] => toldOn(machine);
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

test("a report is not repeated if the watcher is killed right after it", async () => {
  const machine = await booted();
  await liveOnce(machine, async () => killOn(machine, "first"));
  const killAndTell = async (): Promise<void> => {
    killOn(machine, "second");
    await machine.clock.advance(10);
  };
  await liveOnce(machine, killAndTell, true);
  assert.deepEqual(toldOn(machine), ["first", "second"]);
  killOn(machine, "meanwhile");
  await liveOnce(machine, async () => {});
  assert.deepEqual(toldOn(machine), ["first", "second", "meanwhile"]);
});

test("a kill that the journal does not have yet is reported again by the next run, also shortly after another", async () => {
  const machine = await booted();
  await liveOnce(
    machine,
    async () => {
      killOn(machine, "first");
      await machine.clock.advance(190);
      killOn(machine, "second");
      await machine.clock.advance(20);
      // Written 50 ms after the report at the earliest.
      machine.journal.entries.pop();
    },
    true,
  );
  assert.deepEqual(toldOn(machine), ["first"]);
  await liveOnce(machine, async () => {});
  assert.deepEqual(toldOn(machine), ["first", "second"]);
  machine.journal.entries.length = 0;
  await liveOnce(machine, async () => {});
  assert.deepEqual(toldOn(machine), [], "both are recorded by then");
});

test("a kill while podwright was down is reported once its pod is known again, and not lost by a crash before", async () => {
  const machine = await booted();
  await liveOnce(machine, async () => {});
  machine.kernelLog.killed({ pid: 7, name: "tail", cgroup: `${below}/c0ffee`, machine: false });
  const { promise: allKnown, resolve } = Promise.withResolvers<void>();
  const observed: PodStatus[] = [];
  const restarted = { ...machine, found: { pods: () => observed, allKnown } };
  await liveOnce(restarted, async () => await machine.clock.advance(30_000));
  await liveOnce(restarted, async () => await machine.clock.advance(30_000), true);
  assert.deepEqual(toldOn(machine), []);
  await liveOnce(restarted, async () => {
    await machine.clock.advance(30_000);
    observed.push(web);
    resolve();
  });
  assert.deepEqual(
    machine.journal.entries.map(({ what, pod, container }) => [what, pod?.name, container]),
    [["OOMKilling", "web", "app"]],
  );
  await liveOnce(machine, async () => {});
  assert.equal(machine.journal.entries.length, 1);
});

test("a source that never delivers delays the reports of kills by a minute after the start, and no later ones", async () => {
  const machine = await booted();
  const never = { pods: () => [web], allKnown: Promise.withResolvers<void>().promise };
  await liveOnce({ ...machine, found: never }, async () => {
    killOn(machine, "early");
    await machine.clock.advance(59_000);
    assert.deepEqual(toldOn(machine), []);
    await machine.clock.advance(1000);
    assert.deepEqual(toldOn(machine), ["early"]);
    killOn(machine, "late");
    await machine.clock.advance(10);
    assert.deepEqual(toldOn(machine), ["early", "late"]);
  });
});

test("an unreadable record is kept aside, and no kill since the boot is lost or repeated", async () => {
  const warnings: unknown[][] = [];
  const log = { ...silentLog, warn: (...said: unknown[]) => void warnings.push(said) };
  const machine = { ...(await booted()), log };
  await liveOnce(machine, async () => killOn(machine, "first"));
  await machine.files.write("/d/oom.json", "{", 0o600);
  killOn(machine, "meanwhile");
  await liveOnce(machine, async () => {});
  assert.deepEqual(toldOn(machine), ["first", "meanwhile"]);
  assert.equal(new TextDecoder().decode(await machine.files.read("/d/oom.json.bad", 100)), "{");
  assert.deepEqual(
    warnings.map(([message]) => message),
    ["cannot read which OOM kills were reported; reporting all since the boot"],
  );
  // Without the journal that is all that the kernel still has.
  await machine.files.write("/d/oom.json", "{", 0o600);
  machine.journal.entries.length = 0;
  await liveOnce(machine, async () => {});
  assert.deepEqual(toldOn(machine), ["first", "meanwhile"]);
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

test("of more kills at once than the kernel summarizes, none is reported in the wrong pod", async () => {
  await withWatcher(async (kernelLog, journal, told) => {
    for (let pid = 1; pid <= 10; pid++) {
      kernelLog.killed({
        pid,
        name: "tail",
        cgroup: `${below}/c0ffee`,
        machine: false,
        others: [{ pid: pid + 50, name: "cat" }],
      });
    }
    kernelLog.killed({ pid: 11, name: "db", cgroup: "/system.slice/db.service", machine: false });
    await told();
    assert.deepEqual(
      journal.entries.map(({ data }) => data?.["pid"]).filter((pid) => Number(pid) < 50),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
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
  const nobody = { pods: () => [], allKnown: async () => {} };
  const deps = { clock, kernelLog, record, journal: new MemoryRecorder(), log, ...nobody };
  await watchOom(deps, new AbortController().signal);
  assert.deepEqual(warnings, [
    [
      "cannot read kernel messages; OOM kills will not be reported",
      { error: "EPERM: operation not permitted, open '/dev/kmsg'" },
    ],
  ]);
});
