import assert from "node:assert/strict";
import { test } from "node:test";
import { nothing, pod, secret, started } from "../../test/support/run-fixture.ts";
import { podUid } from "../base/ids.ts";

test("a pod that has taken a name stays when the one before it is removed", async () => {
  const fixture = await started();
  await fixture.source.apply({ ...nothing, pods: [pod("a")] });
  const old = fixture.ref("a");
  await fixture.source.apply({ ...nothing, pods: [pod("a", "busybox:2")] });
  assert.equal(await fixture.source.remove(old, 0), false);
  assert.deepEqual(fixture.pods, ["a busybox:2"]);
});

test("an unchanged pod that has ended runs again on request, with the objects that an earlier request brought", async () => {
  const fixture = await started();
  const reference = { name: "A", valueFrom: { secretKeyRef: { name: "s", key: "a" } } };
  const job = pod("a", "busybox", [reference]);
  await fixture.source.apply({ ...nothing, pods: [job], secrets: [secret] });
  const first = fixture.ref("a");
  const again = { ...nothing, pods: [job], runsAgain: true };
  assert.deepEqual(await fixture.source.apply(again), [{ ...first, change: "unchanged" }]);
  fixture.ended.add(first.uid);
  const [applied] = await fixture.source.apply({ ...nothing, pods: [job] });
  assert.deepEqual(applied, { ...first, change: "unchanged" }, "nobody asked for it");
  const [second] = await fixture.source.apply(again);
  assert.equal(second?.change, "replaced");
  assert.notEqual(second.uid, first.uid);
  assert.deepEqual(fixture.uids, [second.uid]);
  assert.notEqual(fixture.source.objects.secret("default", "s"), undefined);
});

test("a pod whose manifest gives its UID runs once", async () => {
  const fixture = await started();
  const named = pod("a");
  const job = { ...named, metadata: { ...named.metadata, uid: podUid("u") } };
  await fixture.source.apply({ ...nothing, pods: [job] });
  fixture.ended.add(podUid("u"));
  const [applied] = await fixture.source.apply({ ...nothing, pods: [job], runsAgain: true });
  assert.equal(applied?.change, "unchanged");
});
