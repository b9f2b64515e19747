import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";
import type { VolumeSpec } from "./volume-spec.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";
const directory = `${root}/pods/u/volumes/example.org~far/far`;
const pod = podOfVolumes([
  { name: "near", emptyDir: {} },
  { name: "far", csi: { driver: "d.example.org" } },
]);

/** Volumes of a driver that responds on the test's command. */
class FarPlugin implements VolumePlugin {
  readonly name = "example.org~far";
  readonly followsObjects = false;
  answer = Promise.withResolvers<void>();
  readonly #files: MemoryFiles;

  constructor(files: MemoryFiles) {
    this.#files = files;
  }

  owns({ volume }: VolumeSpec): boolean {
    return volume.csi !== undefined;
  }

  prepare(_pod: Pod, { name }: VolumeSpec): PreparedVolume {
    return {
      ...{ name, type: "csi", hostPath: directory, readOnly: false, own: true },
      isSetUp: async () => false,
      setUp: async () => {
        await this.#files.makeDirectory(directory, 0o750);
        await this.answer.promise;
      },
    };
  }

  async reconstruct(_found: FoundVolume): Promise<ReconstructedVolume> {
    return {
      driver: "d.example.org",
      tearDown: async () => {
        await this.answer.promise;
        await this.#files.remove(directory);
      },
    };
  }
}

let clock: ManualClock;
let files: MemoryFiles;
let far: FarPlugin;
let volumes: VolumesUnderTest;
const silent = (): string[] =>
  volumes.waits.hanging.map(({ volume, driver, operation }) => `${volume} ${driver} ${operation}`);
const remarks = (): string[] => volumes.entries.map(({ what }) => what).filter((what) => what.startsWith("VolumeSil"));

beforeEach(() => {
  clock = new ManualClock();
  files = new MemoryFiles(clock);
  far = new FarPlugin(files);
  volumes = new VolumesUnderTest(root, {
    clock,
    files,
    mounts: new SimMounts(),
    volumeFiles: new SimVolumeFiles(files),
    loopDevices: new SimLoopDevices(),
  });
  volumes.restart({}, [far]);
});

test("a driver that does not set up a volume is named, and delays no other volume of the pod", async () => {
  const mounting = volumes.manager.mount(pod, needs, cause, signal);
  await clock.advance(30_000);
  assert.deepEqual([silent(), remarks()], [["far d.example.org set up"], ["VolumeSilent"]]);
  assert.ok(await files.stat(`${root}/pods/u/volumes/kubernetes.io~empty-dir/near`));
  far.answer.resolve();
  await clock.advance(0);
  await mounting;
  assert.deepEqual([silent(), remarks()], [[], ["VolumeSilent", "VolumeSilenceOver"]]);
});

test("a driver that does not release a volume is named until it does, and other volumes are removed", async () => {
  far.answer.resolve();
  await volumes.manager.mount(pod, needs, cause, signal);
  far.answer = Promise.withResolvers<void>();
  const releasing = volumes.manager.release(podRef(pod), { cause }, signal);
  await clock.advance(30_000);
  assert.deepEqual([silent(), remarks()], [["far d.example.org tear down"], ["VolumeSilent"]]);
  assert.equal(await files.stat(`${root}/pods/u/volumes/kubernetes.io~empty-dir/near`), undefined);
  far.answer.resolve();
  await clock.advance(0);
  await releasing;
  assert.deepEqual([silent(), remarks()], [[], ["VolumeSilent", "VolumeSilenceOver"]]);
  assert.equal(await files.stat(directory), undefined);
});

test("the setup of a volume is no longer awaited once its pod terminates", async () => {
  const controller = new AbortController();
  const mounting = volumes.manager.mount(pod, needs, cause, controller.signal);
  mounting.catch(() => {});
  await clock.advance(30_000);
  controller.abort(new Error("the pod ends"));
  far.answer.resolve();
  await volumes.manager.release(podRef(pod), { cause }, signal);
  assert.deepEqual([silent(), remarks()], [[], ["VolumeSilent", "VolumeSilenceOver"]]);
});
