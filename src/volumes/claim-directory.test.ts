import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { TestStorage } from "../../test/support/storage.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";

/** A node with a claim `c`, whose own directory is `/state/volumes/ns/c`, or with a PersistentVolume at that path. */
function scene({ isOwn = true } = {}) {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  const mounts = new SimMounts();
  const storage = new TestStorage();
  const volumeFiles = new SimVolumeFiles(files);
  const fixture = new VolumesUnderTest("/kubelet", {
    clock,
    files,
    mounts,
    volumeFiles,
    loopDevices: new SimLoopDevices(),
  });
  fixture.restart({ cluster: { storage, node: new NodeVolumes(), byController: false, labels: () => ({}) } }, []);
  storage.bind("c", { local: { path: "/state/volumes/ns/c" } });
  const volume = storage.volumes.get("pv-c");
  assert.ok(volume);
  const annotations = { "podwright.io/directory-of": "ns/c" };
  if (isOwn) storage.volumes.set("pv-c", { ...volume, metadata: { ...volume.metadata, annotations } });
  const pod = podOfVolumes([{ name: "data", persistentVolumeClaim: { claimName: "c" } }]);
  const mount = (): Promise<unknown> => fixture.manager.mount(pod, needs, cause, new AbortController().signal);
  const failure = (): string => fixture.entries.map(({ message }) => message).join("\n");
  return { clock, files, mounts, volumeFiles, mount, failure };
}

test("a claim's directory that has vanished is not mounted, and the error names the claim and what to do", async () => {
  const { clock, files, mounts, mount, failure } = scene();
  const mounted = mount();
  await clock.advance(0);
  const what = "the directory of claim ns/c was removed, or its disk is not mounted";
  const start = `path "/state/volumes/ns/c" does not exist: ${what}; restore it, or stop its pods`;
  assert.ok(failure().includes(start), failure());
  assert.ok(failure().includes("'podwright volumes --state-dir /state rm --force ns/c'"), failure());
  assert.equal(await files.stat("/state/volumes/ns/c"), undefined);

  await files.makeDirectory("/state/volumes/ns/c", 0o777);
  await clock.advance(1000);
  await mounted;
  assert.equal((await mounts.list()).length, 1, "it starts once the directory is back");
});

test("a file in the place of a claim's directory is named, with what to do about it", async () => {
  for (const isOwn of [true, false]) {
    const { clock, files, mounts, mount, failure } = scene({ isOwn });
    await files.makeDirectory("/state/volumes/ns", 0o700);
    await files.write("/state/volumes/ns/c", "", 0o600);
    const mounted = mount();
    await clock.advance(0);
    const start = 'path "/state/volumes/ns/c" is a file: only directory and block device are supported';
    assert.ok(failure().includes(start), failure());
    const remedy =
      "; move it away and put the directory of claim ns/c in its place, or stop its pods, remove the claim";
    assert.equal(failure().includes(`${start}${remedy}`), isOwn, failure());

    await files.remove("/state/volumes/ns/c");
    await files.makeDirectory("/state/volumes/ns/c", 0o777);
    await clock.advance(1000);
    await mounted;
    assert.equal((await mounts.list()).length, 1, "it starts once the directory is back");
  }
});

test("a FIFO in the place of a claim's directory is said to be neither of what is supported", async () => {
  const { clock, files, volumeFiles, mount, failure } = scene({ isOwn: false });
  await files.makeDirectory("/state/volumes/ns/c", 0o777);
  volumeFiles.kind = async () => "other";
  void mount().catch(() => {});
  await clock.advance(0);
  const told = 'path "/state/volumes/ns/c" is neither: only directory and block device are supported';
  assert.ok(failure().includes(told), failure());
});
