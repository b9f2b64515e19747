import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { TestStorage } from "../../test/support/storage.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";
import type { VolumeSpec } from "./volume-spec.ts";

const { signal } = new AbortController();
const root = "/var/lib/kubelet";
const exclusive = "pv-own";

/** Volumes of drivers, each of which answers when a test says so. */
class Drivers implements VolumePlugin {
  readonly name = "example.org~driver";
  readonly followsObjects = false;
  /** Volumes that are not set up, by name. */
  readonly refused = new Set<string>();
  /** Those that are not torn down before. */
  readonly answers = new Map<string, PromiseWithResolvers<void>>();
  readonly #files: MemoryFiles;

  constructor(files: MemoryFiles) {
    this.#files = files;
  }

  owns({ persistentVolume }: VolumeSpec): boolean {
    return persistentVolume?.spec.csi !== undefined;
  }

  prepare(_pod: Pod, { name }: VolumeSpec, paths: FoundVolume["paths"]): PreparedVolume {
    const directory = paths.volume(this.name, name);
    return {
      ...{ name, type: "csi", hostPath: directory, readOnly: false, own: true },
      isSetUp: async () => false,
      setUp: async () => {
        if (this.refused.has(name)) throw new Error("refused");
        await this.#files.makeDirectory(directory, 0o750);
      },
    };
  }

  async reconstruct({ paths, name }: FoundVolume): Promise<ReconstructedVolume> {
    return {
      driver: "d",
      tearDown: async () => {
        await this.answers.get(name)?.promise;
        await this.#files.remove(paths.volume(this.name, name));
      },
    };
  }
}

let clock: ManualClock;
let files: MemoryFiles;
let mounts: SimMounts;
let drivers: Drivers;
let volumes: VolumesUnderTest;

beforeEach(() => {
  clock = new ManualClock();
  files = new MemoryFiles(clock);
  mounts = new SimMounts();
  drivers = new Drivers(files);
  const volumeFiles = new SimVolumeFiles(files);
  volumes = new VolumesUnderTest(root, { clock, files, mounts, volumeFiles, loopDevices: new SimLoopDevices() });
  const storage = new TestStorage();
  storage.bind("own", { csi: { driver: "d", volumeHandle: "h" }, accessModes: ["ReadWriteOncePod"] });
  storage.bind("far", { csi: { driver: "e", volumeHandle: "f" }, accessModes: ["ReadWriteOnce"] });
  const cluster = { storage, node: new NodeVolumes(), byController: false, labels: () => ({}) };
  volumes.restart({ cluster }, [drivers]);
});

function podOf(uid: string, claims: readonly string[]): Pod {
  const made = podOfVolumes(claims.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })));
  return { ...made, metadata: { ...made.metadata, name: uid, uid: podUid(uid) } };
}

/** Whether the next pod, which wants the exclusive volume, gets it, as far as that is so by now. */
function next(): { readonly has: boolean; readonly mounting: Promise<unknown> } {
  const state = { has: false, mounting: Promise.resolve<unknown>(undefined) };
  state.mounting = volumes.manager.mount(podOf("v", ["own"]), needs, cause, signal).then(() => (state.has = true));
  return state;
}

test("a pod gets a volume for one pod at a time once that is torn down, whatever else its last pod has", async () => {
  const pod = podOf("u", ["own", "far"]);
  await volumes.manager.mount(pod, needs, cause, signal);
  const [own, far] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  drivers.answers.set(exclusive, own).set("pv-far", far);
  const waiting = next();
  const releasing = volumes.manager.release(podRef(pod), { cause }, signal);
  await clock.advance(10_000);
  assert.equal(waiting.has, false);
  own.resolve();
  await clock.advance(0);
  assert.equal(waiting.has, true);
  far.resolve();
  await Promise.all([releasing, waiting.mounting]);
});

test("a volume for one pod at a time that was never set up is free once its pod's set-ups have ended", async () => {
  drivers.refused.add(exclusive);
  const pod = podOf("u", ["own", "far"]);
  const canceling = new AbortController();
  const mounting = volumes.manager.mount(pod, needs, cause, canceling.signal);
  await clock.advance(1000);
  canceling.abort(new Error("the pod ends"));
  await assert.rejects(mounting);
  const far = Promise.withResolvers<void>();
  drivers.answers.set("pv-far", far);
  drivers.refused.clear();
  const waiting = next();
  await clock.advance(10_000);
  assert.equal(waiting.has, false);
  const releasing = volumes.manager.release(podRef(pod), { cause }, signal);
  await clock.advance(0);
  assert.equal(waiting.has, true);
  far.resolve();
  await Promise.all([releasing, waiting.mounting]);
});

/** A mount in the pod's directory, such as of a subPath. */
async function bind(place: string): Promise<string> {
  const target = `${root}/pods/u/${place}`;
  await files.makeDirectory(target, 0o750);
  await mounts.mount({ source: "/somewhere", target, fileSystem: "", options: ["bind"] });
  return target;
}

/** Unmounting it fails until the disposal. */
function busy(target: string): Disposable & { attempts: number } {
  const unmount = mounts.unmount.bind(mounts);
  const state = { attempts: 0, [Symbol.dispose]: () => void (mounts.unmount = unmount) };
  mounts.unmount = async (at) => {
    if (at !== target) return await unmount(at);
    state.attempts++;
    throw new Error(`${target}: target is busy`);
  };
  return state;
}

/** Of the pod's volumes, those that are on the node. */
async function left(): Promise<string[]> {
  const directory = `${root}/pods/u/volumes`;
  const plugins = await files.list(directory);
  const all = await Promise.all(plugins.map(async (plugin) => await files.list(`${directory}/${plugin.name}`)));
  return all.flatMap((entries) => entries.map(({ name }) => name)).toSorted();
}

test("a busy subPath keeps only its own volume, which is torn down once it is free, whatever others wait for", async () => {
  const scratch = { name: "scratch", emptyDir: {} };
  const { spec, ...of } = podOf("u", ["own", "far"]);
  const pod = { ...of, spec: { ...spec, volumes: [...(spec.volumes ?? []), scratch] } };
  await volumes.manager.mount(pod, needs, cause, signal);
  const far = Promise.withResolvers<void>();
  drivers.answers.set("pv-far", far);
  await files.makeDirectory(`${root}/pods/u/volumes/kubernetes.io~empty-dir/scratch`, 0o750);
  await bind("volume-subpaths/pv-own/app/0");
  const target = await bind("volume-subpaths/scratch/app/1");
  const releasing = volumes.manager.release(podRef(pod), { cause }, signal);
  {
    using _busy = busy(target);
    await clock.advance(20_000);
    assert.deepEqual([await left(), mounts.targets], [["pv-far", "scratch"], [target]]);
  }
  await clock.advance(20_000);
  assert.deepEqual([await left(), mounts.targets], [["pv-far"], []]);
  const held = volumes.entries.filter(({ what }) => what.startsWith("VolumeHeld")).map(({ message }) => message);
  const problem = `volume scratch (empty-dir) cannot be removed: ${target}: target is busy`;
  assert.deepEqual(held, [problem, problem]);
  far.resolve();
  await releasing;
  assert.equal(await files.stat(`${root}/pods/u/volume-subpaths`), undefined);
});

test("a volume is torn down after its subPaths, not before, and subPaths of no volume delay none", async () => {
  const pod = podOf("u", ["own"]);
  await volumes.manager.mount(pod, needs, cause, signal);
  const [own, other] = [await bind("volume-subpaths/pv-own/app/0"), await bind("volume-subpaths/host/app/1")];
  const release = async (): Promise<void> => await volumes.manager.release(podRef(pod), { cause }, signal);
  {
    using _busy = busy(own);
    await assert.rejects(release(), /busy/u);
    assert.deepEqual([await left(), mounts.targets], [["pv-own"], [own]]);
  }
  await bind("volume-subpaths/host/app/1");
  {
    using _busy = busy(other);
    await assert.rejects(release(), /busy/u);
    assert.deepEqual([await left(), mounts.targets], [[], [other]]);
  }
  await release();
  assert.deepEqual(mounts.targets, []);
});

test("a failed teardown is repeated while others are under way, and its error tells once none is", async () => {
  const pod = podOf("u", ["own", "far"]);
  await volumes.manager.mount(pod, needs, cause, signal);
  const far = Promise.withResolvers<void>();
  drivers.answers.set("pv-far", far);
  using isBusy = busy(await bind("volume-subpaths/pv-own/app/0"));
  const releasing = assert.rejects(volumes.manager.release(podRef(pod), { cause }, signal), /busy/u);
  await clock.advance(10_000);
  const { attempts } = isBusy;
  assert.equal(attempts, 5);
  far.resolve();
  await clock.advance(0);
  await releasing;
  assert.deepEqual([isBusy.attempts, await left()], [attempts, ["pv-own"]]);
  assert.ok(!volumes.entries.some(({ what }) => what === "VolumeHeldOver"));
});

test("what is mounted over all subPaths is unmounted first", async () => {
  const pod = podOf("u", ["own"]);
  await volumes.manager.mount(pod, needs, cause, signal);
  await bind("volume-subpaths/pv-own/app/0");
  using isBusy = busy(await bind("volume-subpaths"));
  await assert.rejects(volumes.manager.release(podRef(pod), { cause }, signal), /busy/u);
  assert.deepEqual([isBusy.attempts, mounts.targets.length, await left()], [1, 2, ["pv-own"]]);
});
