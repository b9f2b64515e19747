import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, disk, RunClaimsScene, using } from "../../test/support/run-claims-scene.ts";

test("while a claim cannot be read, its PersistentVolume is not given to another, until its document comes again", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(disk, dataClaim);
  assert.equal(fixture.claims.views()[0]?.volume, "disk");
  const [record = ""] = (await fixture.files.list("/state/claims"))
    .map(({ name }) => name)
    .filter((name) => name.startsWith("persistentvolumeclaim_"));
  await fixture.files.write(`/state/claims/${record}`, "", 0o600);
  assert.deepEqual(await fixture.restart(), [`/state/claims/${record}: it is empty`]);
  const other = dataClaim.replace("name: data", "name: other");
  await fixture.take(other);
  const [view] = fixture.claims.views();
  assert.notEqual(view?.phase, "Bound");
  assert.match(
    JSON.stringify(view),
    /disk may be bound to a claim that cannot be read: .* it is empty; give its document again/u,
  );
  const waits = (...documents: string[]): readonly string[] => {
    const objects = fixture.checked(...documents).map(({ manifest }) => manifest);
    return fixture.claims.preview(objects, [using("other")]).waits.flat();
  };
  assert.match(waits()[0] ?? "", /claim default\/other is not bound: PersistentVolume disk may be bound to a claim/u);
  assert.deepEqual(waits(dataClaim), []);
  await fixture.take(dataClaim);
  const volumes = new Map(fixture.claims.views().map(({ name, volume }) => [name, volume]));
  assert.equal(volumes.get("data"), "disk");
  assert.notEqual(volumes.get("other"), "disk");
  assert.deepEqual(fixture.claims.unreadable, []);
});
