import { systemLoopDevices } from "../linux/files/loop-devices.ts";
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { HangingStorage, noHangingStorage } from "../../test/support/hanging-storage.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import { podUid } from "../base/ids.ts";
import { removeVolumeDirectory } from "../csi/removal.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemMounts } from "../linux/files/mounts.ts";
import { systemVolumeFiles } from "../linux/files/volume-files.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { needsRoot, testDirectory } from "../linux/processes/testing.ts";
import type { Mounts } from "../ports/mounts.ts";
import { removePodDirectory } from "../runtime/layout/pod-directories.ts";
import { podRef } from "../runtime/pod-ref.ts";

const signal = new AbortController().signal;
const options = { skip: needsRoot() };
const pod = podOfVolumes([{ name: "v", emptyDir: {} }]);

/** A node on the machine itself, with data outside its pods that must not be touched. */
class Scene implements AsyncDisposable {
  readonly #directory = testDirectory();
  readonly root = `${realpathSync(this.#directory.path)}/kubelet`;
  readonly precious = `${realpathSync(this.#directory.path)}/precious`;
  readonly pod = `${this.root}/pods/u`;
  readonly volumes: VolumesUnderTest;

  constructor() {
    mkdirSync(`${this.precious}/below`, { recursive: true });
    writeFileSync(`${this.precious}/file`, "kept");
    writeFileSync(`${this.precious}/below/file`, "kept");
    const ports = {
      clock: systemClock,
      files: systemFiles,
      mounts: systemMounts,
      volumeFiles: systemVolumeFiles,
      loopDevices: systemLoopDevices,
    };
    this.volumes = new VolumesUnderTest(this.root, ports);
  }

  /** The directory of the pod's emptyDir. */
  async mounted(): Promise<string> {
    return (await this.volumes.manager.mount(pod, needs, cause, signal)).get("v")?.hostPath ?? "";
  }

  bind(target: string, source = this.precious): void {
    mkdirSync(target, { recursive: true });
    execFileSync("mount", ["--bind", source, target]);
  }

  /** The pod ends: by this run of podwright, or the next; its directory is removed as far as it may be. */
  async end(changed: { readonly mounts?: Mounts } = {}): Promise<unknown> {
    let failure: unknown;
    await this.volumes
      .restart(changed)
      .release(podRef(pod), { cause }, signal)
      .catch((error: unknown) => (failure = error));
    await removePodDirectory(systemFiles, { rootDirectory: this.root }, podUid("u")).catch((error: unknown) => {
      failure ??= error;
    });
    return failure;
  }

  mounts(): string[] {
    const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    return lines.map((line) => line.split(" ")[4] ?? "").filter((target) => target.startsWith(`${this.root}/`));
  }

  isUntouched(): void {
    assert.equal(readFileSync(`${this.precious}/file`, "utf8"), "kept");
    assert.equal(readFileSync(`${this.precious}/below/file`, "utf8"), "kept");
    assert.deepEqual(readdirSync(this.precious).toSorted(), ["below", "file"]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const target of this.mounts().toReversed()) execFileSync("umount", ["--lazy", target]);
    this.#directory[Symbol.dispose]();
  }
}

test(
  "mounts in an emptyDir, also stacked, on a file, or deep, are unmounted and their data kept",
  options,
  async () => {
    await using scene = new Scene();
    const volume = await scene.mounted();
    scene.bind(`${volume}/a/b/c`);
    scene.bind(`${volume}/a/b/c`, `${scene.precious}/below`);
    scene.bind(`${volume}/a`, scene.precious);
    writeFileSync(`${volume}/single`, "");
    execFileSync("mount", ["--bind", `${scene.precious}/file`, `${volume}/single`]);
    assert.equal(await scene.end(), undefined);
    assert.deepEqual([scene.mounts(), existsSync(scene.pod)], [[], false]);
    scene.isUntouched();
  },
);

test("an unnoticed mount, in a volume or on it, is neither entered nor removed", options, async () => {
  for (const place of ["inside", ""]) {
    await using scene = new Scene();
    const volume = await scene.mounted();
    writeFileSync(`${volume}/own`, "the pod's");
    scene.bind(place === "" ? volume : `${volume}/${place}`);
    // It came after the table was read.
    const failure = await scene.end({ mounts: { ...systemMounts, below: async () => [] } });
    assert.match(String(failure), /EBUSY/u, place);
    assert.equal(scene.mounts().length, 1);
    scene.isUntouched();
    assert.equal(await scene.end(), undefined);
    assert.deepEqual([scene.mounts(), existsSync(scene.pod)], [[], false]);
    scene.isUntouched();
  }
});

test(
  "removal follows no links: in a volume, in place of a volume, of a plugin, or of all volumes",
  options,
  async () => {
    await using scene = new Scene();
    const volume = await scene.mounted();
    symlinkSync(scene.precious, `${volume}/link`);
    symlinkSync(`${scene.precious}/file`, `${volume}/file`);
    const parent = `${scene.pod}/volumes/kubernetes.io~configmap`;
    symlinkSync(scene.precious, parent);
    const linked = `${scene.pod}/volumes/kubernetes.io~empty-dir/linked`;
    symlinkSync(scene.precious, linked);
    await scene.end();
    scene.isUntouched();
    assert.equal(existsSync(volume), false);
    const [left] = scene.volumes.manager.left;
    assert.equal(left?.list, "volumes/kubernetes.io~configmap, volumes/kubernetes.io~empty-dir/linked");

    await using other = new Scene();
    mkdirSync(`${other.precious}/kubernetes.io~empty-dir`);
    mkdirSync(`${other.precious}/kubernetes.io~empty-dir/v`);
    writeFileSync(`${other.precious}/kubernetes.io~empty-dir/v/file`, "kept");
    mkdirSync(other.pod, { recursive: true });
    symlinkSync(other.precious, `${other.pod}/volumes`);
    await other.end();
    assert.equal(readFileSync(`${other.precious}/kubernetes.io~empty-dir/v/file`, "utf8"), "kept");
  },
);

test("files of an unknown plugin in a pod's directory stay, mounted or not", options, async () => {
  await using scene = new Scene();
  await scene.mounted();
  const parent = `${scene.pod}/volumes/example.org~old`;
  scene.bind(`${parent}/far/deep/mount`);
  mkdirSync(`${parent}/data`);
  writeFileSync(`${parent}/data/file`, "somebody's");
  scene.bind(`${scene.pod}/volumes/kubernetes.io~iscsi/v`);
  assert.equal(await scene.end(), undefined);
  assert.deepEqual(scene.mounts().toSorted(), [
    `${parent}/far/deep/mount`,
    `${scene.pod}/volumes/kubernetes.io~iscsi/v`,
  ]);
  assert.equal(readFileSync(`${parent}/data/file`, "utf8"), "somebody's");
  scene.isUntouched();
});

test(
  "a driver's volume that is still mounted keeps its directory, its data file and its content",
  options,
  async () => {
    await using scene = new Scene();
    const directory = `${scene.pod}/volumes/kubernetes.io~csi/pv-1`;
    scene.bind(`${directory}/mount`);
    writeFileSync(`${directory}/vol_data.json`, "{}");
    const remove = async (mounts: Pick<Mounts, "below">): Promise<string> =>
      await removeVolumeDirectory({ files: systemFiles, mounts }, directory, `${directory}/mount`);
    assert.equal(await remove(systemMounts), "mounts");
    // Even if the table of mounts did not have it.
    assert.equal(await remove({ below: async () => [] }), "content");
    scene.isUntouched();
    execFileSync("umount", [`${directory}/mount`]);
    writeFileSync(`${directory}/mount/late`, "the pod's");
    assert.equal(await remove(systemMounts), "content", "what was written beside the mount is somebody's");
    assert.deepEqual(readdirSync(directory).toSorted(), ["mount", "vol_data.json"]);
  },
);

test("a busy mount stays with its content until it can be unmounted", options, async () => {
  await using scene = new Scene();
  const volume = await scene.mounted();
  writeFileSync(`${volume}/own`, "the pod's");
  scene.bind(`${volume}/inside`);
  const user = spawn("sleep", ["60"], { cwd: `${volume}/inside`, stdio: "ignore" });
  await once(user, "spawn");
  assert.match(String(await scene.end()), /busy/u);
  assert.equal(readFileSync(`${volume}/own`, "utf8"), "the pod's", "nothing is removed beside it");
  scene.isUntouched();
  user.kill("SIGKILL");
  await once(user, "exit");
  assert.equal(await scene.end(), undefined);
  scene.isUntouched();
});

test(
  "a dead server's mount in a volume delays nothing and is detached",
  { skip: noHangingStorage ?? false },
  async () => {
    for (const isDead of [true, false]) {
      await using scene = new Scene();
      const volume = await scene.mounted();
      using far = new HangingStorage(`${volume}/far`);
      if (isDead) far.end();
      const beganMs = performance.now();
      assert.equal(await scene.end(), undefined);
      assert.ok(performance.now() - beganMs < 10_000);
      assert.deepEqual([scene.mounts(), existsSync(scene.pod)], [[], false]);
    }
  },
);
