import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, disk, never, RunClaimsScene } from "../../test/support/run-claims-scene.ts";

test("a volume that is reserved for a claim that waits stays beyond the last pod, whatever its class", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(
    disk.replace("spec: {", "spec: {storageClassName: fast, claimRef: {name: data}, "),
    dataClaim.replace("1Gi", "2Gi"),
  );
  await fixture.claims.forgetUnused();
  await fixture.restart();
  const { status } = await fixture.claims.claim("default", "data", never);
  assert.match(status?.conditions?.[0]?.message ?? "", /reserved for it by claimRef: volume "disk": .*too small/u);
  assert.equal(await fixture.files.stat("/state/volumes/default/data"), undefined);
});
