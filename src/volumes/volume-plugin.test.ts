import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { podUid } from "../base/ids.ts";
import type { Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { VolumeSpec } from "./volume-spec.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";
const place = `${root}/pods/u/volumes/example.org~disk/data`;

/** A driver of its own kind: mounts a disk, and finds in the volume's directory which one it was. */
class DiskPlugin implements VolumePlugin {
  readonly name = "example.org~disk";
  readonly followsObjects = false;
  readonly tornDown: string[] = [];
  readonly #files: Files;
  readonly #mounts: Mounts;

  constructor(files: Files, mounts: Mounts) {
    this.#files = files;
    this.#mounts = mounts;
  }

  owns({ name }: VolumeSpec): boolean {
    return name === "data";
  }

  prepare(_pod: Pod, { name }: VolumeSpec, paths: VolumePaths): PreparedVolume {
    const directory = paths.volume(this.name, name);
    const target = `${directory}/mount`;
    return {
      ...{ name, type: "disk", hostPath: target, readOnly: false, own: true },
      isSetUp: async () => (await this.#mounts.below(target)).length > 0,
      setUp: async () => {
        await this.#files.makeDirectory(target, 0o750);
        await this.#files.write(`${directory}/disk`, "disk-7", 0o600);
        await this.#mounts.mount({ source: "/dev/disk-7", target, fileSystem: "ext4", options: [] });
      },
    };
  }

  async reconstruct({ paths, name, mounts }: FoundVolume): Promise<ReconstructedVolume | undefined> {
    const directory = paths.volume(this.name, name);
    if ((await this.#files.stat(`${directory}/disk`)) === undefined) return undefined;
    const disk = new TextDecoder().decode(await this.#files.read(`${directory}/disk`, 100));
    return {
      tearDown: async () => {
        for (const target of mounts) await this.#mounts.unmount(target);
        for (const path of ["/mount", "/disk", ""]) await this.#files.remove(`${directory}${path}`);
        this.tornDown.push(disk);
      },
    };
  }
}

class Fixture extends VolumesUnderTest {
  readonly files: MemoryFiles;
  readonly mounts: SimMounts;
  readonly driver: DiskPlugin;

  constructor() {
    const clock = new ManualClock();
    const files = new MemoryFiles(clock);
    const mounts = new SimMounts();
    super(root, { clock, files, mounts, volumeFiles: new SimVolumeFiles(files), loopDevices: new SimLoopDevices() });
    this.files = files;
    this.mounts = mounts;
    this.driver = new DiskPlugin(files, mounts);
  }

  async names(path: string): Promise<string[]> {
    return (await this.files.list(`${root}/pods/u/${path}`)).map(({ name }) => name);
  }
}

const volumes: readonly Volume[] = [{ name: "scratch", emptyDir: {} }, { name: "data" }];

test("a plugin of its own kind creates its volumes, and the next run tears them down from the state on disk", async () => {
  const fixture = new Fixture();
  const pod = podOfVolumes(volumes);
  const mounted = await fixture.restart({}, [fixture.driver]).mount(pod, needs, cause, signal);
  assert.deepEqual(
    ["scratch", "data"].map((name) => mounted.get(name)?.hostPath),
    [`${root}/pods/u/volumes/kubernetes.io~empty-dir/scratch`, `${place}/mount`],
  );
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal((await fixture.mounts.list()).length, 1, "what is set up is left alone");
  await fixture.restart({}, [fixture.driver]).release(podRef(pod), { cause }, signal);
  assert.deepEqual(fixture.driver.tornDown, ["disk-7"]);
  assert.deepEqual(await fixture.mounts.list(), []);
  assert.deepEqual(await fixture.names("volumes"), []);
  const last = fixture.entries.findLast(({ kind, what }) => kind === "action" && what === "UnmountVolumes");
  assert.deepEqual(last?.message.split(" ").slice(2).toSorted(), ["data", "scratch,"]);
});

test("a volume without its plugin stays with its mount, and the pod's others are removed", async () => {
  const fixture = new Fixture();
  const pod = podOfVolumes(volumes);
  await fixture.restart({}, [fixture.driver]).mount(pod, needs, cause, signal);
  const manager = fixture.restart();
  await manager.release(podRef(pod), { cause }, signal);
  assert.deepEqual(
    (await fixture.mounts.list()).map(({ target }) => target),
    [`${place}/mount`],
  );
  assert.ok(await fixture.files.stat(`${place}/disk`));
  assert.deepEqual(await fixture.names("volumes"), ["example.org~disk"]);
  assert.equal(await manager.keeps(podUid("u")), true);
  const notes = fixture.entries.filter(({ what }) => what === "VolumesLeft");
  assert.deepEqual(
    notes.map(({ message }) => message),
    [
      "no volume plugin owns volumes/example.org~disk/data (mounted): left in /var/lib/kubelet/pods/u, " +
        "which is removed once they are unmounted and their directories are empty",
    ],
  );
});

test("files that belong to no plugin stay, and are reported once until they change", async () => {
  const fixture = new Fixture();
  const pod = podRef(podOfVolumes(volumes));
  const manager = fixture.restart({}, [fixture.driver]);
  await fixture.files.makeDirectory(`${place}/mount`, 0o750);
  await fixture.files.write(`${place}/mount/precious`, "", 0o600);
  const reported = async (): Promise<number> => {
    await manager.release(pod, { cause }, signal);
    return fixture.entries.filter(({ what }) => what === "VolumesLeft").length;
  };
  assert.equal(await reported(), 1);
  assert.equal(await reported(), 1);
  assert.ok(await fixture.files.stat(`${place}/mount/precious`));
  await fixture.files.makeDirectory(`${root}/pods/u/volumeDevices/kubernetes.io~csi`, 0o750);
  await fixture.files.symlink("/dev/sdb", `${root}/pods/u/volumeDevices/kubernetes.io~csi/pvc-1`);
  assert.equal(await reported(), 2);
  assert.equal((await fixture.names("volumeDevices/kubernetes.io~csi")).length, 1);
});

test("empty directories of an unknown plugin are removed as soon as nothing is mounted there", async () => {
  const fixture = new Fixture();
  const pod = podRef(podOfVolumes([]));
  const target = `${root}/pods/u/volumes/kubernetes.io~csi/pvc-1/mount`;
  await fixture.files.makeDirectory(target, 0o750);
  await fixture.mounts.mount({ source: "server:/", target, fileSystem: "nfs4", options: [] });
  const list = fixture.files.list.bind(fixture.files);
  fixture.files.list = async (path) => {
    assert.ok(!path.startsWith(target), "a server that is gone would never answer");
    return await list(path);
  };
  await fixture.manager.release(pod, { cause }, signal);
  assert.deepEqual(await fixture.names("volumes/kubernetes.io~csi"), ["pvc-1"]);
  fixture.files.list = list;
  await fixture.mounts.unmount(target);
  assert.equal(await fixture.manager.keeps(podUid("u")), false);
  await fixture.manager.release(pod, { cause }, signal);
  assert.deepEqual(await fixture.names("volumes"), []);
});

test("foreign mounts in the pod's directory stay mounted, and are reported", async () => {
  const fixture = new Fixture();
  const target = `${root}/pods/u/containers/app/disk`;
  await fixture.mounts.mount({ source: "/dev/sdb", target, fileSystem: "ext4", options: [] });
  await fixture.manager.release(podRef(podOfVolumes([])), { cause }, signal);
  assert.equal((await fixture.mounts.list()).length, 1);
  assert.ok(fixture.entries.some(({ message }) => message.includes("owns containers/app/disk (mounted): left")));
});
