import assert from "node:assert/strict";
import { test } from "node:test";
import {
  asked,
  dataClaim,
  disk,
  never,
  pod,
  RunClaimsScene,
  template,
  using,
} from "../../test/support/run-claims-scene.ts";
import type { VolumeManifest } from "../api/storage-manifest.ts";
import { objectKey } from "../sources/run-objects.ts";
import { RunStore } from "../sources/run-store.ts";

test("an owner in a document is from another cluster: the claim is not removed with a pod", async () => {
  const fixture = await RunClaimsScene.started();
  const owner = "ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: uid-p, controller: true}]";
  await fixture.take(dataClaim.replace("name: data", `name: data, ${owner}`));
  await fixture.claims.removeOrphans();
  assert.deepEqual(
    fixture.claims.views().map((view) => [view.name, view.owner]),
    [["data", undefined]],
  );
});

test("an ephemeral volume's claim that another pod uses by name stays until that pod is gone", async () => {
  const fixture = await RunClaimsScene.started();
  const other = using("web-scratch");
  fixture.present = [pod("web", { ephemeral: template }), other];
  await fixture.claims.claim("default", "web-scratch", never);
  fixture.present = [other];
  await fixture.claims.removeOrphans();
  assert.equal(fixture.claims.views().length, 1);
  fixture.present = [];
  await fixture.claims.removeOrphans();
  assert.deepEqual(fixture.claims.views(), []);
});

test("removal of an ephemeral volume's claim does not wait for the next pod of that name, which waits for it", async () => {
  const scene = await RunClaimsScene.started();
  const next = pod("web", { ephemeral: template }, "uid-next");
  scene.present = [pod("web", { ephemeral: template }), next];
  await scene.claims.claim("default", "web-scratch", never);
  scene.present = [next];
  await scene.claims.removeOrphans();
  assert.deepEqual(scene.claims.views(), []);
});

test("a claim that is mounted for an unknown pod is not removed", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim);
  const volume = await fixture.claims.claim("default", "data", never);
  const target = `/state/kubelet/pods/u/volumes/kubernetes.io~local-volume/${volume.spec.volumeName}`;
  await fixture.files.makeDirectory(target, 0o750);
  await fixture.mounts.mount({ source: "/state/volumes/default/data", target, fileSystem: "", options: ["bind"] });
  await assert.rejects(
    fixture.claims.remove("default", "data", asked),
    /claim default\/data is mounted at \/state\/kubelet/u,
  );
  assert.ok(await fixture.files.stat("/state/volumes/default/data"));
  await fixture.mounts.unmount(target);
  await fixture.claims.remove("default", "data", asked);
  assert.deepEqual(fixture.claims.views(), []);
});

for (const [what, ...documents] of [
  ["unbound", dataClaim.replace("accessModes", "volumeName: none, accessModes")],
  ["bound to a PersistentVolume whose document is gone", disk, dataClaim],
] as const) {
  test(`with a claim that is ${what}, nothing is removed from a directory of its name`, async () => {
    const fixture = await RunClaimsScene.started();
    await fixture.take(...documents);
    await new RunStore(fixture.files, "/state/claims").remove("PersistentVolume", objectKey({ name: "disk" }));
    await fixture.restart();
    assert.deepEqual(
      fixture.claims.views().map(({ isOwn }) => isOwn),
      [false],
    );
    await fixture.files.makeDirectory("/state/volumes/default/data", 0o755);
    await fixture.files.write("/state/volumes/default/data/file", "kept", 0o644);
    await fixture.claims.remove("default", "data", asked);
    assert.deepEqual(fixture.claims.views(), []);
    assert.ok(await fixture.files.stat("/state/volumes/default/data/file"));
  });
}

test("what 'volumes inspect' shows of a claim may be given again, and its data is removed with the claim all the same", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim);
  const [view] = fixture.claims.views();
  const shown = (view?.objects ?? []).map((object) => JSON.stringify(object));
  assert.equal(shown.length, 2);
  const [, volume = ""] = shown;
  const moved = fixture.problems(volume.replace("/state/volumes/default/data", "/srv/moved"));
  assert.match(moved[0] ?? "", /persistentvolumesource is immutable after creation; claim default\/data is bound/u);
  await fixture.take(...shown);
  await fixture.restart();
  assert.deepEqual(await fixture.claims.remove("default", "data", asked), {
    ...{ namespace: "default", name: "data" },
    left: undefined,
  });
  assert.equal(await fixture.files.stat("/state/volumes/default/data"), undefined);
  assert.deepEqual(await fixture.files.list("/state/claims"), []);
  const [problem = ""] = fixture.problems(...shown);
  assert.match(problem, /was the directory of claim default\/data, which is not kept here; omit the volume/u);
});

test("a document of a claim's own directory that an earlier version kept goes with the claim and its data", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim);
  const [, volume] = fixture.claims.views()[0]?.objects ?? [];
  assert.ok(volume);
  await new RunStore(fixture.files, "/state/claims").save(volume as unknown as VolumeManifest);
  await fixture.restart();
  assert.equal((await fixture.claims.remove("default", "data", asked)).left, undefined);
  assert.equal(await fixture.files.stat("/state/volumes/default/data"), undefined);
  assert.deepEqual(await fixture.files.list("/state/claims"), []);
});

test("the empty directory of a binding that was interrupted is removed with its claim", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim.replace("accessModes", "volumeName: none, accessModes"));
  await fixture.files.makeDirectory("/state/volumes/default/data", 0o777);
  await fixture.claims.remove("default", "data", asked);
  assert.deepEqual(await fixture.files.list("/state/volumes"), []);
});

test("a claim's directory that another volume of a pod leads to is not removed", async () => {
  const path = "/state/volumes/default/data";
  const volume = disk.replace("/srv/disk", `${path}/below`);
  const other = dataClaim.replace("name: data", "name: other").replace("spec: {", "spec: {volumeName: disk, ");
  for (const present of [pod("host", { hostPath: { path: `${path}//` } }), using("other")]) {
    const fixture = await RunClaimsScene.started();
    await fixture.take(dataClaim);
    await fixture.take(volume, other);
    fixture.present = [present];
    // Of several claims to be removed, none is if the view of one has a pod.
    const users = fixture.claims.views().find(({ name }) => name === "data")?.usedBy ?? [];
    assert.deepEqual(
      users.map(({ name }) => name),
      [present.metadata.name],
    );
    await assert.rejects(
      fixture.claims.remove("default", "data", asked),
      new RegExp(`claim default/data is used by default/${present.metadata.name}`, "u"),
    );
  }
});
