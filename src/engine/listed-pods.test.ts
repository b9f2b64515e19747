import assert from "node:assert/strict";
import { test } from "node:test";
import { deaf, podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import type { NodePod } from "../node-api/node-pods.ts";
import { desiredPods, presentPods } from "./listed-pods.ts";

const spec = { terminationGracePeriodSeconds: 30, containers: [deaf("old")] };

/** UIDs, each with the containers of the spec. */
function told(pods: readonly NodePod[]): string[] {
  return pods.map(({ pod }) => `${pod.metadata.uid} ${pod.spec.containers.map(({ name }) => name).join(",")}`);
}

test("a pod that was removed is listed no more while it stops, though it can be reached", async () => {
  const scene = new Scene();
  scene.node.add(podOf(spec));
  await scene.pass(5000);
  assert.deepEqual(told(desiredPods(scene.node.pods())), ["uid-1 old"]);
  assert.equal(desiredPods(scene.node.pods())[0]?.status?.phase, "Running");
  scene.node.remove("uid-1");
  assert.deepEqual(told(desiredPods(scene.node.pods())), []);
  assert.deepEqual(told(presentPods(scene.node.pods())), ["uid-1 old"]);
  await scene.pass(60_000);
  assert.deepEqual(told(presentPods(scene.node.pods())), []);
});

test("of a pod that replaces another of its name only the new one is listed, from the start", async () => {
  const scene = new Scene();
  scene.node.add(podOf(spec));
  await scene.pass(5000);
  scene.node.remove("uid-1");
  scene.node.add(podOf({ ...spec, containers: [runs("new")] }, "uid-2"));
  assert.deepEqual(told(desiredPods(scene.node.pods())), ["uid-2 new"]);
  assert.deepEqual(told(presentPods(scene.node.pods())), ["uid-1 old", "uid-2 new"]);
  await scene.pass(60_000);
  assert.deepEqual(told(desiredPods(scene.node.pods())), ["uid-2 new"]);
});

test("a pod that returns under its UID is listed as it will be, also while the earlier one stops", async () => {
  const scene = new Scene();
  scene.node.add(podOf(spec));
  await scene.pass(5000);
  scene.node.remove("uid-1");
  await scene.pass(1000);
  scene.node.add(podOf({ ...spec, containers: [runs("new")] }));
  assert.deepEqual(told(desiredPods(scene.node.pods())), ["uid-1 new"]);
  assert.deepEqual(told(presentPods(scene.node.pods())), ["uid-1 old"]);
  await scene.pass(60_000);
  assert.deepEqual(told(presentPods(scene.node.pods())), ["uid-1 new"]);
});

test("a pod that only the runtime has is neither listed nor reached without its spec", async () => {
  const scene = new Scene();
  scene.node.add(podOf(spec));
  await scene.pass(5000);
  scene.node.kill();
  scene.node.desired.delete("uid-1");
  await scene.node.files.removeTree("/var/lib/kubelet/pods/uid-1");
  scene.node.start();
  await scene.pass(700);
  assert.deepEqual([scene.node.pods().length, presentPods(scene.node.pods()).length], [1, 0]);
  assert.deepEqual(desiredPods(scene.node.pods()), []);
});
