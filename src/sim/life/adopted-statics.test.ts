import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import { podUid } from "../../base/ids.ts";
import { asStatic } from "./cluster.ts";

const minuteMs = 60_000;
/** As computed from two versions of a manifest. */
const [first, second] = ["0123456789abcdef0123456789abcdef", "123456789abcdef0123456789abcdef0"];

/** A static pod that another kubelet left running with its mirror pod, and which keeps its UID. */
async function adopted(): Promise<ClusterScene> {
  const world = new ClusterScene();
  const { cluster, node } = world;
  want(world, "uid-go");
  node.start();
  await world.pass(minuteMs);
  assert.ok(world.runs("uid-go"));
  node.kill();
  cluster.delete("uid-go");
  want(world, first);
  node.start();
  await world.pass(minuteMs);
  return world;
}

function want({ cluster }: ClusterScene, uid: string): void {
  const { metadata, spec } = clusterPod("static");
  cluster.want(asStatic({ metadata: { ...metadata, uid: podUid(uid) }, spec }));
}

/** The pods that the mirror pods show. */
function shown({ cluster }: ClusterScene): readonly unknown[] {
  return cluster.mirrors().map(({ value }) => value.metadata.annotations?.["kubernetes.io/config.mirror"]);
}

test("a static pod that keeps its UID keeps its mirror pod, over restarts, and its Events are that pod's", async () => {
  const world = await adopted();
  assert.deepEqual([world.runs("uid-go"), world.runs(first), world.deletions], [true, false, []]);
  assert.deepEqual(shown(world), ["uid-go"]);
  world.crash("uid-go");
  await world.pass(minuteMs);
  assert.deepEqual(world.told("uid-go"), ["Running", "True", 1]);
  assert.ok(world.events("uid-go").length > 0);
  assert.deepEqual(world.events(first), []);
  world.node.kill();
  world.node.start();
  await world.pass(minuteMs);
  assert.deepEqual([shown(world), world.deletions, world.runs("uid-go")], [["uid-go"], [], true]);
  world.cluster.deleteMirror(0);
  await world.pass(minuteMs);
  assert.deepEqual([shown(world), world.deletions.length], [["uid-go"], 1], "someone else deleted it");
});

test("a static pod that kept its UID is replaced with its mirror pod when its manifest changes, and goes with it", async () => {
  const world = await adopted();
  const { cluster, node } = world;
  cluster.delete(first);
  want(world, second);
  node.staticsChanged();
  await world.pass(minuteMs);
  assert.deepEqual([world.runs("uid-go"), world.runs(second)], [false, true]);
  assert.deepEqual(shown(world), [second]);
  cluster.delete(second);
  node.staticsChanged();
  await world.pass(minuteMs);
  assert.deepEqual([world.runs(second), shown(world)], [false, []]);
});
