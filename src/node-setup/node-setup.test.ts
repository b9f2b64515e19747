import assert from "node:assert/strict";
import { test } from "node:test";
import { FileError, type Files } from "../ports/files.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog, SimCgroups } from "../sim/machine.ts";
import { kernelSettings } from "./kernel-settings.ts";
import { NodeSetup, type NodeSetupSettings } from "./node-setup.ts";

/** A machine with processes in its root cgroup; those without a program are kernel threads. */
class Processes extends SimCgroups {
  root = [1, 2, 30, 31];
  isReadable = true;
  readonly moved: string[] = [];
  override async ownPids(): Promise<number[]> {
    if (!this.isReadable) throw new Error("EIO: i/o error");
    return this.root;
  }
  override async move(pids: readonly number[], path: string): Promise<ReadonlyMap<number, unknown>> {
    if (path === "/forbidden") throw new Error("EPERM: operation not permitted");
    const moved = pids.filter((pid) => pid !== 666);
    this.moved.push(...moved.map((pid) => `${pid} ${path}`));
    this.root = this.root.filter((pid) => !moved.includes(pid));
    return new Map(
      pids.filter((pid) => !moved.includes(pid)).map((pid) => [pid, new Error("EINVAL: invalid argument")]),
    );
  }
}

const usual: NodeSetupSettings = {
  protectsKernelDefaults: true,
  toleratesUserNamespace: false,
  reservedCgroups: [],
  systemCgroups: "",
  kubeletCgroups: "",
};

async function setUp(settings: Partial<NodeSetupSettings>, cgroups = new Processes(), ownCgroup = "0::/\n") {
  const clock = new SimClock(0);
  const memory = new MemoryFiles(clock.incarnation());
  for (const [name, value] of Object.entries(kernelSettings)) {
    const path = `/proc/sys/${name}`;
    await memory.makeDirectory(path.slice(0, path.lastIndexOf("/")), 0o755);
    await memory.write(path, String(value), 0o644);
  }
  await memory.makeDirectory("/proc/30", 0o755);
  await memory.write("/proc/30/cgroup", ownCgroup, 0o444);
  const files: Files = Object.assign(memory, {
    readLink: async (path: string) => {
      if (path === "/proc/2/exe") throw new FileError("ENOENT", path, "ENOENT: no such file");
      return "/usr/bin/it";
    },
  });
  const told: string[] = [];
  const log = { ...silentLog, info: (message: string) => void told.push(message) };
  const journal = { record: ({ what }: { what: string }) => told.push(what) };
  const setup = new NodeSetup(
    { clock: clock.incarnation(), cgroups, files, journal, log, ownPid: 30 },
    { ...usual, ...settings, cgroupDriver: "cgroupfs", kubepods: undefined, protectsMemory: false },
  );
  const end = new AbortController();
  return { clock, cgroups, setup, told, end };
}

test("processes of the root cgroup except process 1 and kernel threads are moved, new ones within a minute", async () => {
  const { clock, cgroups, setup, end } = await setUp({ systemCgroups: "/system" });
  const running = setup.run(end.signal);
  await clock.run(1000);
  assert.deepEqual(cgroups.moved, ["30 /system", "31 /system"]);
  cgroups.root.push(40);
  await clock.run(59_000);
  assert.equal(cgroups.moved.length, 2);
  await clock.run(61_000);
  assert.deepEqual(cgroups.moved.slice(2), ["40 /system"]);
  end.abort();
  await running;
});

test("a process that cannot be moved does not affect others", async () => {
  const cgroups = new Processes();
  cgroups.root = [1, 666, 31];
  const { clock, setup, told, end } = await setUp({ systemCgroups: "/system" }, cgroups);
  const running = setup.run(end.signal);
  await clock.run(1000);
  assert.deepEqual(cgroups.moved, ["31 /system"]);
  assert.deepEqual(told, ["cannot move a process into systemCgroups"]);
  end.abort();
  await running;
});

test("a cgroup that cannot be created is reported once, for processes and for the kubelet", async () => {
  const { clock, cgroups, setup, told, end } = await setUp({
    systemCgroups: "/forbidden",
    kubeletCgroups: "/forbidden",
  });
  const running = setup.run(end.signal);
  await clock.run(1000);
  assert.deepEqual(cgroups.moved, []);
  const refused = "cannot move the processes of the root cgroup into systemCgroups";
  assert.deepEqual(told, [refused, "cannot move the kubelet into kubeletCgroups"]);
  end.abort();
  await running;
});

test("the kubelet is moved into kubeletCgroups, unless it is already there", async () => {
  for (const [own, moved] of [
    ["0::/\n", ["30 /podruntime"]],
    ["0::/podruntime\n", []],
  ] as const) {
    const { clock, cgroups, setup, end } = await setUp({ kubeletCgroups: "/podruntime" }, new Processes(), own);
    const running = setup.run(end.signal);
    await clock.run(1000);
    assert.deepEqual(cgroups.moved, moved);
    end.abort();
    await running;
  }
});

test("without both settings there is nothing to do", async () => {
  const { clock, setup, end } = await setUp({});
  await setup.run(end.signal);
  assert.deepEqual(clock.incarnation().pending(), []);
});

test("a missing reserved cgroup prevents the start, after its event was sent", async () => {
  const cgroup = { kind: "Kube", cgroup: "/kube", reserved: { cpu: "1" }, onlyCompressible: false } as const;
  const { clock, setup, told } = await setUp({ reservedCgroups: [cgroup] });
  const failing = assert.rejects(setup.load(), /Failed to enforce Kube Reserved Cgroup Limits on "\/kube"/);
  await clock.run(2000);
  await failing;
  assert.deepEqual(told, ["FailedNodeAllocatableEnforcement"]);
});

test("a root cgroup that cannot be read is reported, and looked at again in a minute", async () => {
  const cgroups = new Processes();
  cgroups.isReadable = false;
  const { clock, setup, told, end } = await setUp({ systemCgroups: "/system" }, cgroups);
  const running = setup.run(end.signal);
  await clock.run(1000);
  assert.deepEqual(told, ["cannot move the processes of the root cgroup into systemCgroups"]);
  cgroups.isReadable = true;
  await clock.run(61_000);
  assert.deepEqual(cgroups.moved, ["30 /system", "31 /system"]);
  end.abort();
  await running;
});
