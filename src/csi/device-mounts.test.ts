import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { RpcError } from "../ports/rpc.ts";
import { silentLog } from "../sim/machine.ts";
import { CsiCallError } from "./call-error.ts";
import { DeviceMounts, type StageableVolume, type StagedFiles } from "./device-mounts.ts";
import { DriverStore } from "./driver-store.ts";
import { StorageWaits } from "../volumes/storage-waits.ts";

const volume: StageableVolume = { driver: "d", handle: "h", name: "pv", mode: "Filesystem", stagingPath: "/staging" };
const { signal } = new AbortController();

/** A driver whose node service the test answers for, and what is on the disk of its volume. */
class Scene {
  readonly clock = new ManualClock();
  readonly calls: string[] = [];
  readonly inUse = new Set<string>();
  isOnDisk = false;
  isMounted = false;
  /** What is told of its silence. */
  readonly told: string[] = [];
  readonly waits = new StorageWaits(
    this.clock,
    { record: ({ what, message }) => this.told.push(`${what}: ${message}`) },
    silentLog,
  );
  /** Called when the volume is no longer in use. */
  onRelease: () => void = () => {};
  /** What the next calls to unstage end with. */
  readonly unstaging: RpcError[] = [];
  /** What later ones wait for. */
  answer: Promise<void> | undefined;
  readonly drivers = new DriverStore({
    clock: this.clock,
    called: () => {},
    plugins: { connect: () => this.#calls() as never },
  });
  readonly devices = new DeviceMounts({
    clock: this.clock,
    journal: { record: () => 0 },
    log: silentLog,
    drivers: this.drivers,
    names: { toldToDrivers: (path) => path },
    inUse: () => ({
      use: (name) => void this.inUse.add(name),
      release: (name) => {
        this.inUse.delete(name);
        this.onRelease();
      },
    }),
    waits: () => this.waits,
  });
  readonly files: StagedFiles = {
    save: async () => void (this.isOnDisk = true),
    remove: async () => {
      if (this.isMounted) return "mounts";
      this.isOnDisk = false;
      return "nothing";
    },
  };

  constructor() {
    this.devices.start(signal);
  }

  /** Of the driver's node service, those that are called. */
  #calls(): object {
    return {
      nodeGetCapabilities: async () => ({ capabilities: [{ type: { case: "rpc", value: { type: 1 } } }] }),
      nodeUnstageVolume: async () => {
        this.calls.push("unstage");
        const error = this.unstaging.shift();
        if (error !== undefined) throw error;
        await this.answer;
        return {};
      },
      [Symbol.dispose]: () => {},
    };
  }

  async stage(holder: string, error?: CsiCallError): Promise<void> {
    await this.devices.stage(volume, this.files, holder, signal, async () => {
      this.calls.push("stage");
      if (error !== undefined) throw error;
    });
  }

  async register(): Promise<void> {
    await this.drivers.add("d", "/csi.sock", "1.0.0");
  }

  release(holder: string): void {
    this.devices.release("d", "h", holder);
  }
}

function failure(code: "Internal" | "DeadlineExceeded"): CsiCallError {
  return new CsiCallError(new RpcError(code, "by command", { isStatus: true }));
}

test("a volume is staged for its first pod and unstaged after its last, and is in use meanwhile", async () => {
  const scene = new Scene();
  await scene.register();
  await scene.stage("u1/pv");
  await scene.stage("u2/pv");
  assert.deepEqual(scene.calls, ["stage"]);
  assert.deepEqual([...scene.inUse], ["kubernetes.io/csi/d^h"]);
  scene.release("u1/pv");
  await scene.devices.ended();
  assert.deepEqual(scene.calls, ["stage"]);
  scene.release("u2/pv");
  await scene.devices.ended();
  assert.deepEqual(scene.calls, ["stage", "unstage"]);
  assert.deepEqual([scene.inUse.size, scene.isOnDisk, scene.devices.volumes.length], [0, false, 0]);
});

test("a stage that failed definitely needs no unstage", async () => {
  const scene = new Scene();
  await scene.register();
  await assert.rejects(scene.stage("u1/pv", failure("Internal")), /code = Internal desc = by command/);
  assert.equal(scene.isOnDisk, false);
  scene.devices.releasePod("u1");
  await scene.devices.ended();
  assert.deepEqual(scene.calls, ["stage"]);
  assert.equal(scene.inUse.size, 0);
});

test("what is mounted after a stage that failed definitely is unstaged, and in use until then", async () => {
  const scene = new Scene();
  await scene.register();
  scene.isMounted = true;
  await assert.rejects(scene.stage("u1/pv", failure("Internal")), /by command/);
  assert.equal(scene.devices.volumes[0]?.state, "uncertain");
  scene.unstaging.push(new RpcError("Internal", "by command", { isStatus: true }));
  scene.devices.releasePod("u1");
  await scene.clock.advance(400);
  assert.deepEqual([scene.calls, scene.inUse.size], [["stage", "unstage"], 1]);
  scene.isMounted = false;
  await scene.clock.advance(500);
  await scene.devices.ended();
  assert.deepEqual([scene.calls, scene.inUse.size], [["stage", "unstage", "unstage"], 0]);
});

test("a volume that is wanted again at the moment of its release stays known", async () => {
  const scene = new Scene();
  await scene.register();
  await scene.stage("u1/pv");
  let again: Promise<void> | undefined;
  scene.onRelease = () => {
    again ??= scene.stage("u2/pv");
  };
  scene.release("u1/pv");
  await scene.devices.ended();
  await again;
  await scene.devices.ended();
  assert.deepEqual(scene.calls, ["stage", "unstage", "stage"]);
  assert.deepEqual([scene.devices.volumes[0]?.pods, scene.inUse.size], [1, 1]);
});

test("a stage with an unknown outcome is unstaged, even if a later one fails definitely", async () => {
  const scene = new Scene();
  await scene.register();
  await assert.rejects(scene.stage("u1/pv", failure("DeadlineExceeded")));
  await assert.rejects(scene.stage("u1/pv", failure("Internal")));
  assert.equal(scene.isOnDisk, true);
  scene.devices.releasePod("u1");
  await scene.devices.ended();
  assert.deepEqual(scene.calls, ["stage", "stage", "unstage"]);
  assert.equal(scene.isOnDisk, false);
});

test("a volume staged by an earlier run is staged again by a call, and unstaged if no pod needs it", async () => {
  const scene = new Scene();
  await scene.register();
  scene.devices.found(volume, scene.files);
  scene.devices.hold("d", "h", "u1/pv");
  assert.equal(scene.inUse.size, 1);
  await scene.stage("u1/pv");
  assert.deepEqual(scene.calls, ["stage"]);
  scene.release("u1/pv");
  await scene.devices.ended();
  assert.deepEqual(scene.calls, ["stage", "unstage"]);

  scene.devices.found(volume, scene.files);
  await scene.devices.ended();
  assert.deepEqual(scene.calls, ["stage", "unstage"], "a pod that starts may want it");
  scene.devices.tidy();
  await scene.devices.ended();
  assert.deepEqual(scene.calls, ["stage", "unstage", "unstage"]);
});

test("unstaging is retried with upstream's back-off, waits for the driver, and yields to a new pod", async () => {
  const scene = new Scene();
  await scene.register();
  await scene.stage("u1/pv");
  scene.unstaging.push(
    new RpcError("Internal", "no", { isStatus: true }),
    new RpcError("Internal", "no", { isStatus: true }),
  );
  scene.release("u1/pv");
  await scene.clock.advance(499);
  assert.deepEqual(scene.calls, ["stage", "unstage"]);
  await scene.clock.advance(1);
  assert.deepEqual(scene.calls, ["stage", "unstage", "unstage"]);
  // A pod comes before the retry: after a failed unstage the state is unknown.
  await scene.stage("u2/pv");
  assert.equal(scene.calls.at(-1), "stage");
  await scene.clock.advance(10_000);
  assert.equal(scene.calls.filter((call) => call === "unstage").length, 2);

  scene.drivers.remove("d");
  scene.release("u2/pv");
  await scene.clock.advance(1000);
  assert.equal(scene.calls.filter((call) => call === "unstage").length, 2);
  await scene.register();
  await scene.devices.ended();
  assert.equal(scene.calls.filter((call) => call === "unstage").length, 3);
});

test("a volume that is still mounted after its unstage is in use, and unstaged again", async () => {
  const scene = new Scene();
  await scene.register();
  await scene.stage("u1/pv");
  scene.isMounted = true;
  scene.release("u1/pv");
  await scene.clock.advance(400);
  assert.deepEqual([scene.calls, scene.inUse.size, scene.isOnDisk], [["stage", "unstage"], 1, true]);
  scene.isMounted = false;
  await scene.clock.advance(200);
  await scene.devices.ended();
  assert.deepEqual([scene.calls, scene.inUse.size, scene.isOnDisk], [["stage", "unstage", "unstage"], 0, false]);
});

/** Its driver has refused to unstage the volume once. */
async function refusedUnstage(): Promise<Scene> {
  const scene = new Scene();
  await scene.register();
  await scene.stage("u1/pv");
  scene.unstaging.push(new RpcError("Internal", "busy", { isStatus: true }));
  scene.release("u1/pv");
  await scene.clock.advance(400);
  return scene;
}

test("a volume that cannot be unstaged is named with the reason, and as silent while its driver does not answer", async () => {
  const scene = await refusedUnstage();
  const held = "volume pv (d) cannot be unstaged: rpc error: code = Internal desc = busy";
  assert.deepEqual([scene.told, scene.waits.hanging], [[`VolumeHeld: ${held}`], []]);
  const hung = Promise.withResolvers<void>();
  scene.answer = hung.promise;
  await scene.clock.advance(40_000);
  const silent = "volume pv (d) does not answer: its unstaging has not returned within 30 s";
  assert.deepEqual(scene.told.slice(1), [`VolumeHeldOver: ${held}`, `VolumeSilent: ${silent}`]);
  assert.deepEqual(
    scene.waits.hanging.map(({ volume: name, driver, operation, pod }) => [name, driver, operation, pod]),
    [["pv", "d", "unstage", undefined]],
  );
  hung.resolve();
  await scene.devices.ended();
  assert.deepEqual([scene.told.slice(3), scene.waits.hanging], [[`VolumeSilenceOver: ${silent}`], []]);
});

test("a volume that a pod uses again waits for no unstage any more", async () => {
  const scene = await refusedUnstage();
  await scene.stage("u2/pv");
  await scene.clock.advance(1000);
  assert.deepEqual(
    scene.told.map((line) => line.split(":")[0]),
    ["VolumeHeld", "VolumeHeldOver"],
  );
});

test("a volume is not staged in two modes at once", async () => {
  const scene = new Scene();
  await scene.register();
  await scene.stage("u1/pv");
  const block: StageableVolume = { ...volume, name: "pv-raw", mode: "Block" };
  await assert.rejects(
    scene.devices.stage(block, scene.files, "u2/pv-raw", signal, async () => {}),
    /volume h of driver d is in use on this node as a file system \(PersistentVolume pv\): it cannot be a device/,
  );
  scene.release("u1/pv");
  await scene.devices.ended();
  assert.deepEqual(scene.calls, ["stage", "unstage"], "who waits does not keep it staged");
  await scene.devices.stage(block, scene.files, "u2/pv-raw", signal, async () => void scene.calls.push("stage"));
  assert.deepEqual(scene.calls, ["stage", "unstage", "stage"]);
});
