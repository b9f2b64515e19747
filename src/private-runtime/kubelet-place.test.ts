import assert from "node:assert/strict";
import { test } from "node:test";
import { kubelet, KubeletPlaceScene, own } from "../../test/support/kubelet-place-scene.ts";
import { HeldError } from "./hand-over.ts";
import { holdKubeletPlace } from "./kubelet-place.ts";

test("the engine's pods and plugins appear where drivers expect a kubelet's, and are removed again", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.files.makeDirectory(own, 0o750);
  assert.equal(await fixture.place.take(), true);
  await fixture.place.taken;
  const parts = ["pods", "plugins"].map((name) => `${own}/${name} at /var/lib/kubelet/${name}`);
  const mounted = [`${own} at ${own}`, ...parts];
  assert.deepEqual(await fixture.shown(), mounted);
  assert.equal(await fixture.place.take(), false);
  assert.deepEqual(await fixture.shown(), mounted);
  await fixture.place.give();
  assert.deepEqual(await fixture.shown(), []);
  assert.equal(await fixture.files.stat("/var/lib/kubelet"), undefined);
  assert.equal(fixture.released, 1);
  await fixture.place.give();
  assert.equal(fixture.released, 1);
});

test("a place that is a link is given back and left like any other, and the link stays", async () => {
  for (const ending of ["give", "leave"] as const) {
    const fixture = new KubeletPlaceScene();
    await fixture.files.makeDirectory(own, 0o750);
    await fixture.files.makeDirectory("/data/kubelet", 0o750);
    await fixture.files.makeDirectory("/var/lib", 0o755);
    await fixture.files.symlink("/data/kubelet", "/var/lib/kubelet");
    await fixture.place.take();
    const parts = ["pods", "plugins"].map((name) => `${own}/${name} at /data/kubelet/${name}`);
    assert.deepEqual(await fixture.shown(), [`${own} at ${own}`, ...parts]);
    await fixture.place[ending]();
    assert.deepEqual(await fixture.shown(), ending === "give" ? [] : [`${own} at ${own}`]);
    assert.equal((await fixture.files.stat("/var/lib/kubelet"))?.type, "symlink");
  }
});

test("what is mounted in the engine's directories is shown with them, also when the place is taken again", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.files.makeDirectory(own, 0o750);
  const options = async (): Promise<unknown[]> => {
    const all = await fixture.mounts.list();
    return all.filter(({ target }) => target.startsWith("/var/lib/kubelet/")).map((mount) => mount.options);
  };
  await fixture.place.take();
  assert.deepEqual(await options(), [["rbind"], ["rbind"]]);
  await fixture.place.leave();
  assert.deepEqual(await options(), []);
  await fixture.place.take();
  assert.deepEqual(await options(), [["rbind"], ["rbind"]]);
});

test("a kubelet whose root directory the place links to uses it", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.files.makeDirectory("/data/kubelet", 0o750);
  await fixture.files.makeDirectory("/var/lib", 0o755);
  await fixture.files.symlink("/data/kubelet", "/var/lib/kubelet");
  fixture.running.push(kubelet(7, "--root-dir=/data/kubelet"));
  assert.match(await fixture.refusal(), /belongs to another node agent \(pid 7: \/usr\/bin\/kubelet/u);
  assert.deepEqual(await fixture.shown(), []);
});

test("while a kubelet or another engine uses the place, nothing is mounted and the user is named", async () => {
  const fixture = new KubeletPlaceScene();
  fixture.running.push(kubelet(7, "--root-dir=/var/lib/kubelet/"));
  assert.match(await fixture.refusal(), /belongs to another node agent \(pid 7: \/usr\/bin\/kubelet/u);
  assert.equal(fixture.released, 1);
  fixture.running.splice(0, 1, kubelet(7, "--root-dir", "/elsewhere"));
  assert.equal(await fixture.place.take(), true);
  const other = new KubeletPlaceScene();
  other.isHeld = true;
  other.running.push({ pid: 7, name: "node", arguments: ["podwright", "engine"] });
  assert.match(
    await other.refusal(),
    /another node agent \(pid 7: podwright engine\) -> CSI drivers need this directory/u,
  );
  assert.deepEqual(await other.shown(), []);
});

test("a place that can only be mounted partly is released completely, and can be taken later", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.files.makeDirectory(own, 0o750);
  const mount = fixture.mounts.mount.bind(fixture.mounts);
  fixture.mounts.mount = async (point) => {
    if (point.target.endsWith("/plugins")) throw new Error("no memory");
    await mount(point);
  };
  await assert.rejects(fixture.place.take(), /no memory/u);
  assert.deepEqual([await fixture.shown(), fixture.released], [[], 1]);
  fixture.mounts.mount = mount;
  assert.equal(await fixture.place.take(), true);
  assert.equal((await fixture.shown()).length, 3);
});

test("what was shown of a place that can only be mounted partly is hidden without its volumes, or named", async () => {
  for (const exitCode of [0, 32]) {
    const fixture = new KubeletPlaceScene();
    await fixture.files.makeDirectory(own, 0o750);
    fixture.exitCode = exitCode;
    const { mounts } = fixture;
    const [mount, unmount] = [mounts.mount.bind(mounts), mounts.unmount.bind(mounts)];
    mounts.mount = async (point) => {
      if (point.target.endsWith("/plugins")) throw new Error("no memory");
      await mount(point);
    };
    mounts.unmount = async (target: string, options?: { readonly lazy?: boolean }) => {
      if (target.endsWith("/pods") && options?.lazy !== true) throw new Error("EBUSY");
      await unmount(target);
    };
    const refusal = await fixture.place.take().catch((error: unknown) => error);
    assert.ok(refusal instanceof Error);
    assert.deepEqual(fixture.commands, ["mount --make-rprivate /var/lib/kubelet/pods"]);
    const isShown = (await fixture.shown()).includes(`${own}/pods at /var/lib/kubelet/pods`);
    assert.equal(isShown, exitCode !== 0);
    assert.match(refusal.message, isShown ? /no memory; \/var\/lib\/kubelet\/pods remains mounted/u : /^no memory$/u);
  }
});

test("a place that cannot be left is not taken, and can be left or taken again", async () => {
  for (const next of ["leave", "take"] as const) {
    const fixture = new KubeletPlaceScene();
    await fixture.files.makeDirectory(own, 0o750);
    await fixture.place.take();
    const { left, taken: before } = fixture.place;
    fixture.exitCode = 32;
    await assert.rejects(fixture.place.leave(), /cannot make .*pods a private mount/u);
    assert.deepEqual([fixture.place.isTaken, await fixture.place.isHeld(), left.aborted], [false, true, true]);
    assert.notEqual(fixture.place.taken, before);
    assert.equal(fixture.released, 0);
    fixture.running.push(kubelet(7));
    assert.match(await fixture.refusal(), /pid 7/u);
    assert.equal(fixture.released, 0, "it still has mounts there");
    fixture.running.pop();
    fixture.exitCode = 0;
    await fixture.place[next]();
    assert.deepEqual(
      [fixture.place.isTaken, await fixture.place.isHeld()],
      next === "take" ? [true, true] : [false, false],
    );
    assert.equal(fixture.place.left.aborted, next === "leave");
    await fixture.place.give();
    assert.deepEqual(await fixture.shown(), []);
  }
});

test("MicroK8s is at the place if that is a link to its directory", async () => {
  for (const root of ["/var/snap/microk8s/common/var/lib/kubelet", "/elsewhere"]) {
    const fixture = new KubeletPlaceScene();
    await fixture.files.makeDirectory(root, 0o750);
    await fixture.files.makeDirectory("/var/lib", 0o755);
    await fixture.files.symlink(root, "/var/lib/kubelet");
    fixture.running.push({
      pid: 7,
      name: "kubelite",
      arguments: ["/snap/microk8s/1/kubelite", "--start-control-plane"],
    });
    assert.equal((await fixture.place.kubelet())?.pid, root === "/elsewhere" ? undefined : 7);
  }
});

test("a kubelet in a container of this machine has its own place", async () => {
  const fixture = new KubeletPlaceScene();
  fixture.running.push(kubelet(7));
  await fixture.files.makeDirectory("/proc/7/root/var/lib/kubelet", 0o755);
  assert.equal(await fixture.place.take(), true);
});

test("a kubelet's leftover files are not hidden", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.files.makeDirectory("/var/lib/kubelet/pods/uid-old", 0o750);
  assert.match(await fixture.refusal(), /\/var\/lib\/kubelet\/pods is not empty: it has files of a kubelet/u);
  assert.deepEqual(await fixture.shown(), []);
});

test("missing mount propagation is reported as the reason", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.files.makeDirectory(own, 0o750);
  fixture.canShare = false;
  assert.match(await fixture.refusal(), /is not a shared mount.*would not reach containers -> stop the pods first/u);
  assert.deepEqual([await fixture.shown(), fixture.released], [[], 1]);
});

test("a refusal removes the directories that it made there, and no other", async () => {
  const fixture = new KubeletPlaceScene();
  fixture.canShare = false;
  await fixture.refusal();
  assert.equal(await fixture.files.stat("/var/lib/kubelet"), undefined);
  await fixture.files.makeDirectory("/var/lib/kubelet/plugins", 0o750);
  await fixture.refusal();
  assert.deepEqual(
    (await fixture.files.list("/var/lib/kubelet")).map(({ name }) => name),
    ["plugins"],
  );
  await fixture.files.write("/var/lib/kubelet/plugins/socket", "", 0o600);
  assert.match(await fixture.refusal(), /plugins is not empty/u);
  assert.equal(await fixture.files.stat("/var/lib/kubelet/pods"), undefined);
});

test("left to a kubelet, it shows nothing of the engine, whose volumes stay mounted, and can be taken again", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.files.makeDirectory(own, 0o750);
  await fixture.place.take();
  const volume = `${own}/pods/u/volumes/kubernetes.io~csi/pv/mount`;
  await fixture.mounts.mount({ source: "disk", target: volume, fileSystem: "ext4", options: [] });
  assert.equal(await fixture.place.kubelet(), undefined);
  fixture.running.push(kubelet(7));
  assert.equal((await fixture.place.kubelet())?.pid, 7);
  await fixture.place.leave();
  assert.equal(fixture.place.isTaken, false);
  assert.deepEqual(await fixture.shown(), [`${own} at ${own}`, `disk at ${volume}`]);
  assert.deepEqual(
    fixture.commands,
    ["pods", "plugins"].map((name) => `mount --make-rprivate /var/lib/kubelet/${name}`),
    "before the unmount, which would reach the volumes of the engine otherwise",
  );
  assert.equal(fixture.released, 1);
  assert.match(await fixture.refusal(), /belongs to another node agent \(pid 7/u);
  fixture.running.pop();
  assert.equal(await fixture.place.take(), true);
  await fixture.place.leave();
  await fixture.mounts.unmount(volume);
  await fixture.place.give();
  assert.deepEqual(await fixture.shown(), []);
});

test("a kubelet whose root directory it is holds the place, and is refused while an engine does", async () => {
  const fixture = new KubeletPlaceScene();
  await fixture.files.makeDirectory("/var/lib/kubelet", 0o750);
  await fixture.files.makeDirectory("/elsewhere", 0o750);
  await fixture.files.symlink("/var/lib/kubelet", "/link");
  assert.equal(await holdKubeletPlace(fixture, "/elsewhere"), undefined);
  (await holdKubeletPlace(fixture, "/link"))?.[Symbol.dispose]();
  assert.equal(fixture.released, 1);
  fixture.isHeld = true;
  fixture.running.push({ pid: 7, name: "node", arguments: ["podwright", "engine"] });
  assert.equal(await holdKubeletPlace(fixture, "/elsewhere"), undefined);
  const error: unknown = await holdKubeletPlace(fixture, "/var/lib/kubelet").catch((reason: unknown) => reason);
  assert.ok(error instanceof HeldError);
  assert.equal(error.message, "/var/lib/kubelet belongs to another node agent (pid 7: podwright engine)");
  assert.match(error.remedy ?? "", /podwright stop.*--root-dir/u);
});
