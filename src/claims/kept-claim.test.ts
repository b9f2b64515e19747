import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, disk, RunClaimsScene } from "../../test/support/run-claims-scene.ts";

test("what a bound claim's document says by default may also be written", async () => {
  const fixture = await RunClaimsScene.started();
  const plain = dataClaim.replace("name: data", "name: plain");
  const full = dataClaim.replace("spec: {", "spec: {volumeMode: Filesystem, selector: {}, ");
  await fixture.take(disk, plain, full.replace("selector: {}, ", ""));
  assert.deepEqual(fixture.problems(full.replace("name: data", "name: plain"), full, dataClaim), []);
  await fixture.take(full.replace("name: data", "name: plain"));
  assert.equal(fixture.claims.views().filter(({ phase }) => phase === "Bound").length, 2);
  const selecting = fixture.problems(full.replace("selector: {}", "selector: {matchLabels: {a: b}}"))[0] ?? "";
  assert.match(selecting, /: selector is not set in the kept claim;/u);
});
