import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { RecordedStatsFiles } from "../../test/support/stats.ts";
import { type Signal, signals } from "../eviction/thresholds.ts";
import type { Cri } from "../ports/cri.ts";
import { MachineObservations } from "./machine-observations.ts";

const all = new Set<Signal>(signals);
const never = new AbortController().signal;

interface Scene {
  readonly clock: ManualClock;
  readonly files: RecordedStatsFiles;
  readonly observations: MachineObservations;
  asked: number;
  runtimeFails: boolean;
  /** The runtime does not answer before. */
  waits: Promise<void>;
}

function machine(): Scene {
  const [clock, files] = [new ManualClock(), new RecordedStatsFiles({ version: 2, root: "/cg" })];
  files.addRootCgroup();
  files.addCgroup("/kubepods");
  files.texts.set("/cg/kubepods/memory.max", "1000000000\n");
  files.texts.set("/cg/kubepods/memory.current", "400000000\n");
  files.texts.set("/cg/kubepods/memory.stat", "inactive_file 100000000\n");
  files.texts.set("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\n");
  files.texts.set("/proc/loadavg", "0 0 0 1/77 5\n");
  files.texts.set("/proc/sys/kernel/pid_max", "32768\n");
  files.texts.set("/proc/sys/kernel/threads-max", "1000\n");
  const imageFsInfo = async (): Promise<object> => {
    scene.asked++;
    await scene.waits;
    if (scene.runtimeFails) throw new Error("the runtime is away");
    return { imageFilesystems: [{ fsId: { mountpoint: "/images" } }] };
  };
  const cri = { images: { imageFsInfo } } as unknown as Pick<Cri, "images">;
  const node = { rootDirectory: "/kubelet", cgroupRoot: "/", cgroupDriver: "cgroupfs" } as const;
  const scene: Scene = {
    ...{ clock, files, asked: 0, runtimeFails: false, waits: Promise.resolve() },
    observations: new MachineObservations({ clock, files, cri, node, countsMemAvailable: false }),
  };
  return scene;
}

test("available amounts come from the kernel and the disks", async () => {
  const { observations, fileSystems } = await machine().observations.look(all, never);
  assert.equal(fileSystems, "one");
  assert.deepEqual(
    [...observations].map(([signal, { available, capacity }]) => [signal, Number(available), Number(capacity)]),
    [
      // What the working set of the root cgroup leaves; the kernel's own memory is not in it.
      ["memory.available", 512_000, 1_024_000],
      ["allocatableMemory.available", 700_000_000, 1_000_000_000],
      ["pid.available", 923, 1000],
      ["nodefs.available", 400, 1000],
      ["nodefs.inodesFree", 60, 100],
      ["imagefs.available", 400, 1000],
      ["imagefs.inodesFree", 60, 100],
      ["containerfs.available", 400, 1000],
      ["containerfs.inodesFree", 60, 100],
    ],
  );
});

test("the runtime is queried for its image directory once a minute, only on demand, and may fail", async () => {
  const scene = machine();
  const look = async (wanted: ReadonlySet<Signal>): Promise<boolean> =>
    (await scene.observations.look(wanted, never)).observations.has("imagefs.available");
  assert.equal(await look(new Set(["memory.available"])), false);
  assert.equal(scene.asked, 0);
  scene.runtimeFails = true;
  assert.equal(await look(all), false);
  scene.runtimeFails = false;
  assert.equal(await look(all), true);
  await scene.clock.advance(59_999);
  assert.equal(await look(all), true);
  assert.equal(scene.asked, 2);
  scene.runtimeFails = true;
  await scene.clock.advance(1);
  assert.equal(await look(all), true, "images lie where they lay");
  assert.equal(scene.asked, 3);
});

test("where images are is unknown until the runtime has answered", async () => {
  const scene = machine();
  scene.runtimeFails = true;
  const unknown = await scene.observations.look(all, never);
  assert.equal(unknown.fileSystems, undefined);
  assert.deepEqual(
    [unknown.observations.has("nodefs.available"), unknown.observations.has("imagefs.available")],
    [true, false],
  );
  scene.runtimeFails = false;
  assert.equal(
    (await scene.observations.look(new Set(["memory.available"]), never)).fileSystems,
    undefined,
    "not asked for",
  );
  assert.equal((await scene.observations.look(all, never)).fileSystems, "one");
});

test("a runtime that does not answer is left alone for 15 seconds", async () => {
  const scene = machine();
  scene.runtimeFails = true;
  const stall = Promise.withResolvers<void>();
  scene.waits = stall.promise;
  const look = async (): Promise<unknown> => (await scene.observations.look(all, never)).fileSystems;
  const first = look();
  await scene.clock.advance(5000);
  stall.resolve();
  assert.equal(await first, undefined);
  await settle();
  for (let second = 0; second < 15; second++) {
    await look();
    await scene.clock.advance(1000);
  }
  assert.equal(scene.asked, 1);
  scene.runtimeFails = false;
  assert.equal(await look(), "one");
  assert.equal(scene.asked, 2);
});

test("separate file systems of images and containers are detected", async () => {
  const scene = machine();
  scene.files.numbers.set("/images", 2);
  assert.equal((await scene.observations.look(all, never)).fileSystems, "imagefs");
});

test("a disk that does not answer is missing after two seconds, and all else is observed", async () => {
  const scene = machine();
  const { files, clock } = scene;
  await scene.observations.look(all, never);
  const stall = Promise.withResolvers<undefined>();
  let asked = 0;
  const usage = await files.fileSystem();
  files.fileSystem = async (path = "") => {
    if (path !== "/images") return usage;
    asked++;
    return await stall.promise;
  };
  const first = scene.observations.look(all, never);
  await clock.advance(2000);
  const { observations, unmeasured } = await first;
  const names = ["memory.available", "nodefs.available", "pid.available", "imagefs.available"] as const;
  assert.deepEqual(
    names.map((name) => observations.has(name)),
    [true, true, true, false],
  );
  assert.deepEqual([...unmeasured], [["the file system at /images", "has not answered for 2 s"]]);
  const next = await scene.observations.look(all, never);
  assert.deepEqual([next.observations.has("memory.available"), asked], [true, 1], "it is neither waited for nor asked");
  stall.resolve(undefined);
  await settle();
  files.fileSystem = async () => usage;
  assert.ok((await scene.observations.look(all, never)).observations.has("imagefs.available"));
});

test("a runtime that does not answer delays no other source by more than two seconds", async () => {
  const scene = machine();
  const stall = Promise.withResolvers<void>();
  scene.waits = stall.promise;
  const first = scene.observations.look(all, never);
  await scene.clock.advance(2000);
  const { observations, fileSystems, unmeasured } = await first;
  assert.deepEqual(
    [observations.has("nodefs.available"), fileSystems, [...unmeasured.keys()]],
    [true, undefined, ["the runtime's ImageFsInfo"]],
  );
  stall.resolve();
  await settle();
  assert.equal((await scene.observations.look(all, never)).fileSystems, "one");
});

test("memory is the kernel's own figure if configured", async () => {
  const { clock, files } = machine();
  files.texts.set("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 400 kB\nMemAvailable: 700 kB\n");
  const cri = { images: { imageFsInfo: async () => ({ imageFilesystems: [] }) } } as unknown as Pick<Cri, "images">;
  const node = { rootDirectory: "/kubelet", cgroupRoot: "/", cgroupDriver: "cgroupfs" } as const;
  const observations = new MachineObservations({ clock, files, cri, node, countsMemAvailable: true });
  const { observations: found } = await observations.look(new Set(["memory.available"]), never);
  assert.deepEqual(found.get("memory.available"), { available: 716_800n, capacity: 1_024_000n });
});
