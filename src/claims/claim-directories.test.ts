import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, RunClaimsScene } from "../../test/support/run-claims-scene.ts";

const path = "/state/volumes/default/data";
const bound = `claim default/data is bound to directory ${path}`;
const warning = `warn: a new claim gets what is in its directory already {"namespace":"default","claim":"data","path":"${path}"}`;

test("a directory with contents becomes a new claim's with a warning that names it, and stays as it is", async () => {
  const scene = await RunClaimsScene.started();
  await scene.files.makeDirectory(path, 0o750);
  await scene.files.write(`${path}/file`, "earlier", 0o600);
  await scene.take(dataClaim);
  assert.equal(await scene.path("data"), path);
  assert.ok(await scene.files.stat(`${path}/file`));
  assert.equal((await scene.files.stat(path))?.mode, 0o750);
  assert.deepEqual(scene.journal.messages("ClaimBound"), [`${bound}, which was there already, with what is in it`]);
  assert.deepEqual(scene.logged, [warning]);
});

test("a link or a file in the place of a new claim's directory is told of, too, whatever it leads to", async () => {
  const scene = await RunClaimsScene.started();
  await scene.files.makeDirectory("/state/volumes/default", 0o700);
  await scene.files.symlink("/srv/disk", path);
  await scene.take(dataClaim);
  assert.deepEqual(scene.logged, [warning]);
});

test("of an empty directory, which an interrupted binding leaves, and of a claim that has its own, nothing is told", async () => {
  const scene = await RunClaimsScene.started();
  await scene.files.makeDirectory(path, 0o777);
  await scene.take(dataClaim);
  await scene.files.write(`${path}/file`, "its own", 0o600);
  await scene.restart();
  await scene.take(dataClaim);
  assert.deepEqual(scene.journal.messages("ClaimBound"), [bound]);
  assert.deepEqual(scene.logged, []);
});
