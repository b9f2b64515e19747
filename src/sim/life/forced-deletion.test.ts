import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import type { Pod } from "../../api/pod.ts";
import { behaviourCommand } from "../behaviour.ts";

/** A pod that takes an hour to stop, unless it is killed. */
function stubborn(name: string): Pod {
  const pod = clusterPod(name);
  const command = behaviourCommand({ exitAfterMs: undefined, exitCode: 0, deaf: true, unstartable: false });
  const containers = pod.spec.containers.map((container) => ({ ...container, command }));
  return { ...pod, spec: { ...pod.spec, containers, terminationGracePeriodSeconds: 3600 } };
}

test("a forced deletion ends a pod at once, even while it is being stopped with its own grace period", async () => {
  for (const isEnding of [false, true]) {
    const world = new ClusterScene();
    world.cluster.want(stubborn("web"));
    world.node.start();
    await world.pass(10_000);
    assert.ok(world.runs("uid-web"));
    if (isEnding) world.cluster.delete("uid-web");
    await world.pass(10_000);
    assert.ok(world.runs("uid-web"));
    world.cluster.delete("uid-web", 0);
    await world.pass(5000);
    assert.ok(!world.runs("uid-web"), "the grace is the least there is");
  }
});
