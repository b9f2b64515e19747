import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, disk, RunClaimsScene } from "../../test/support/run-claims-scene.ts";

test("a claim that waits for a free volume gets a directory as soon as another claim has the volume", async () => {
  const fixture = await RunClaimsScene.started();
  const large = dataClaim.replace("name: data", "name: a").replace("1Gi", "2Gi");
  await fixture.take(disk, large, dataClaim);
  assert.deepEqual(
    fixture.claims.views().map(({ name, where }) => [name, where]),
    [
      ["a", "/state/volumes/default/a"],
      ["data", "/srv/disk"],
    ],
  );
});
