import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, never, RunClaimsScene } from "../../test/support/run-claims-scene.ts";

const why =
  "it is not bound yet, although it can be: the last try failed, as on a full disk, or there has been none since it " +
  "became possible; a pod that needs it, or the next 'podwright run' with a manifest, binds it";

/** As a full disk: the claim is written, and its directory is not made. */
async function withoutDirectory(): Promise<RunClaimsScene> {
  const scene = await RunClaimsScene.started();
  await scene.files.write("/state/volumes", "in the way", 0o600);
  await assert.rejects(scene.take(dataClaim));
  return scene;
}

function views({ claims }: RunClaimsScene): unknown {
  return claims.views().map(({ phase, message }) => [phase, message]);
}

test("a claim whose directory cannot be made says so, also after a restart, and gets it with the next run", async () => {
  const scene = await withoutDirectory();
  assert.deepEqual(views(scene), [["Pending", why]]);
  assert.deepEqual(await scene.restart(), []);
  assert.deepEqual(views(scene), [["Pending", why]]);
  await scene.files.remove("/state/volumes");
  await scene.take(dataClaim);
  assert.deepEqual(views(scene), [["Bound", ""]]);
});

test("a claim whose directory could not be made gets it with a pod that needs it", async () => {
  const scene = await withoutDirectory();
  await scene.files.remove("/state/volumes");
  assert.deepEqual(views(scene), [["Pending", why]]);
  await scene.claims.claim("default", "data", never);
  assert.deepEqual(views(scene), [["Bound", ""]]);
});
