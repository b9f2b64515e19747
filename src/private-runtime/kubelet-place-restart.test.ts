import assert from "node:assert/strict";
import { test } from "node:test";
import { kubelet, KubeletPlaceScene, own } from "../../test/support/kubelet-place-scene.ts";
import { PodwrightError } from "../base/errors.ts";
import { HeldError } from "./hand-over.ts";
import { holdKubeletPlace } from "./kubelet-place.ts";

test("what an engine that was killed has left there is found, taken by the next one, and given back", async () => {
  const fixture = new KubeletPlaceScene();
  assert.deepEqual([await fixture.place.isShown(), await fixture.place.isHeld()], [false, false]);
  await fixture.restart();
  const left = await fixture.shown();
  assert.deepEqual([await fixture.place.isShown(), await fixture.place.isHeld()], [true, true]);
  assert.equal(await fixture.place.take(), true);
  assert.deepEqual(await fixture.shown(), left, "nothing is mounted twice");
  await fixture.place.give();
  assert.deepEqual(await fixture.shown(), []);
});

test("an engine that has not taken the place gives back what is there of it, under the lock, and nothing of others", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.restart();
  fixture.isHeld = true;
  await assert.rejects(fixture.place.give(), HeldError);
  fixture.isHeld = false;
  await fixture.mounts.unmount("/var/lib/kubelet/plugins");
  await fixture.mounts.mount({ source: "disk", target: "/var/lib/kubelet/plugins", fileSystem: "ext4", options: [] });
  await fixture.place.give();
  assert.deepEqual(await fixture.shown(), ["disk at /var/lib/kubelet/plugins"]);
  assert.equal(fixture.released, 1);
  assert.equal(await fixture.files.stat("/var/lib/kubelet/pods"), undefined);
});

test("a kubelet that is there when the engine starts gets its directories back", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.restart();
  fixture.running.push(kubelet(7));
  assert.match(await fixture.refusal(), /belongs to another node agent \(pid 7/u);
  const { taken } = fixture.place;
  await fixture.place.leave();
  assert.deepEqual(await fixture.shown(), [`${own} at ${own}`]);
  assert.deepEqual([fixture.place.isTaken, await fixture.place.isHeld()], [false, false]);
  assert.equal(fixture.place.taken, taken, "who waits for it is told of the next time");
  fixture.running.pop();
  assert.equal(await fixture.place.take(), true);
  await taken;
});

test("a mount that an engine could not remove completely is replaced, because no driver's mounts would reach it", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.restart();
  const list = fixture.mounts.list.bind(fixture.mounts);
  const target = "/var/lib/kubelet/pods";
  let isPrivate = true;
  fixture.mounts.list = async () => {
    return (await list()).map((each) => ({ ...each, isShared: !(isPrivate && each.target === target) }));
  };
  const unmount = fixture.mounts.unmount.bind(fixture.mounts);
  fixture.mounts.unmount = async (path) => {
    if (path === target) isPrivate = false;
    await unmount(path);
  };
  await fixture.place.take();
  assert.deepEqual(fixture.commands, [`mount --make-rprivate ${target}`]);
  assert.deepEqual([isPrivate, (await fixture.shown()).length], [false, 3]);
});

test("a place is needed once it is taken, or before that at request", async () => {
  const [taken, requested] = [new KubeletPlaceScene(), new KubeletPlaceScene()];
  await taken.place.take();
  await taken.place.needed;
  requested.place.need();
  await requested.place.needed;
  assert.equal(requested.place.isTaken, false);
});

test("a kubelet is refused while the directories of an engine that does not run are in its root directory", async () => {
  for (const isRegistered of [true, false]) {
    const fixture = new KubeletPlaceScene();
    await fixture.restart();
    await fixture.files.write("/state/format.json", "{}", 0o644);
    const list = fixture.mounts.list.bind(fixture.mounts);
    const disk = { source: "/dev/vda", target: "/", fileSystem: "ext4", options: [] };
    if (isRegistered) {
      await fixture.files.makeDirectory("/run/podwright/roots", 0o755);
      await fixture.files.write("/run/podwright/roots/1", `${own}\n`, 0o644);
    } else {
      fixture.mounts.list = async () => [
        ...[disk, ...(await list())].map((mount) => {
          return { ...mount, device: "254:1", root: mount.source.startsWith("/state") ? mount.source : "/" };
        }),
      ];
    }
    const error: unknown = await holdKubeletPlace(fixture, "/var/lib/kubelet").catch((reason: unknown) => reason);
    assert.ok(error instanceof PodwrightError && !(error instanceof HeldError), String(error));
    assert.match(
      error.message,
      /^\/var\/lib\/kubelet\/pods shows \/state\/kubelet\/pods: a kubelet would remove the volumes/u,
    );
    assert.match(error.remedy ?? "", /^stop the pods of the engine .* --state-dir \/state'.* another --root-dir$/u);
    assert.equal(fixture.released, 1, "the lock is not kept");
    assert.equal(await holdKubeletPlace(fixture, "/elsewhere"), undefined);
    await fixture.place.give();
    (await holdKubeletPlace(fixture, "/var/lib/kubelet"))?.[Symbol.dispose]();
  }
});

test("what an administrator has mounted in a kubelet's root directory does not refuse it", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.files.makeDirectory("/var/lib/kubelet/pods", 0o750);
  await fixture.files.makeDirectory("/var/lib/kubelet/plugins", 0o750);
  // A directory whose path looks like an engine's.
  await fixture.files.makeDirectory(`${own}/plugins`, 0o750);
  const mounts = [
    { source: "/dev/vdb", target: "/var/lib/kubelet/pods", device: "254:2", root: "/" },
    { source: `${own}/plugins`, target: "/var/lib/kubelet/plugins", device: "254:1", root: `${own}/plugins` },
    { source: "/dev/vda", target: "/", device: "254:1", root: "/" },
  ];
  for (const mount of mounts) await fixture.mounts.mount({ ...mount, fileSystem: "ext4", options: [] });
  const held = await holdKubeletPlace(fixture, "/var/lib/kubelet");
  assert.ok(held);
});
