import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, apiPod, cause, pending, running, withWorld } from "../../test/support/status-world.ts";
import { podWith } from "../../test/support/pods.ts";
import { podUid } from "../base/ids.ts";
import { StaticNames } from "./static-names.ts";

test("a static pod and its successor share a name until each is gone, the later one first", () => {
  const names = new StaticNames();
  names.add("ns/a", podUid("1"));
  names.add("ns/a", podUid("2"));
  names.add("ns/a", podUid("1"));
  names.add("ns/b", podUid("3"));
  assert.deepEqual(names.named("ns/a"), ["2", "1"]);
  names.remove(podUid("2"));
  assert.deepEqual([names.named("ns/a"), names.named("ns/b")], [["1"], ["3"]]);
  names.remove(podUid("1"));
  names.remove(podUid("unknown"));
  assert.deepEqual(names.named("ns/a"), []);
});

const own = podWith({ containers: [{ name: "c" }] }, { name: "s-node1", uid: "static-uid" });
const mirror = apiPod("s-node1", { annotations: { "kubernetes.io/config.mirror": "hash" } });

test("a late status of a removed API pod is not mistaken for a static pod's", async () => {
  await withWorld(async ({ kube, sync, statuses, hashes }) => {
    hashes.clear();
    statuses.set(own, running, cause);
    hashes.set("static-uid", "hash");
    sync.podSeen(mirror);
    assert.ok(await kube.isQuiet(), "nothing is kept of it");
  });
});

test("a static pod's name is kept as long as its status", async () => {
  await withWorld(async ({ kube, sync, statuses, hashes }) => {
    sync.podSeen(mirror);
    statuses.set(own, running, cause);
    await (await kube.next()).json(answer(mirror, running, "11"));
    statuses.remove(podUid("static-uid"));
    hashes.clear();
    statuses.set(own, pending, cause);
    hashes.set("static-uid", "hash");
    sync.podSeen({ ...mirror, metadata: { ...mirror.metadata, resourceVersion: "12" } });
    await kube.clock.advance(20_000);
    assert.ok(await kube.isQuiet(), "nothing is kept of it");
  });
});
