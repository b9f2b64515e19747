import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, RunClaimsScene } from "../../test/support/run-claims-scene.ts";

test("a claim whose directory cannot be made says so, also after a restart, and gets it with the next run", async () => {
  const scene = await RunClaimsScene.started();
  // As a full disk: the claim is written, and its directory is not made.
  await scene.files.write("/state/volumes", "in the way", 0o600);
  await assert.rejects(scene.take(dataClaim));
  const views = (): unknown => scene.claims.views().map(({ phase, message }) => [phase, message]);
  const why = "its binding was interrupted, as by a full disk; it is tried again with the next 'podwright run'";
  assert.deepEqual(views(), [["Pending", why]]);
  assert.deepEqual(await scene.restart(), []);
  assert.deepEqual(views(), [["Pending", why]]);
  await scene.files.remove("/state/volumes");
  await scene.take(dataClaim);
  assert.deepEqual(views(), [["Bound", ""]]);
});
