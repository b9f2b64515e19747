import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import { podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import type { Pod } from "../../api/pod.ts";
import type { RuntimeHandlerInfo } from "../../runtime-service/features.ts";
import { fieldsAt } from "../api-server/values.ts";

const handler = (name: string, userNamespaces: boolean): RuntimeHandlerInfo => {
  return { name, recursiveReadOnlyMounts: false, userNamespaces };
};

/** A pod of the cluster with a user namespace. */
function withUsers(name: string, runtimeClassName?: string): Pod {
  const pod = clusterPod(name);
  return {
    ...pod,
    spec: { ...pod.spec, hostUsers: false, ...(runtimeClassName !== undefined && { runtimeClassName }) },
  };
}

function waitingMessage(world: ClusterScene, uid: string): unknown {
  const [state] = world.containerStates(uid);
  return fieldsAt(state ?? {}, "waiting")["message"];
}

test("a pod gets a user namespace if its RuntimeClass's handler has them, by what the runtime says now", async () => {
  const world = new ClusterScene();
  world.runtime.handlers = [handler("", true), handler("plain", false)];
  world.cluster.want(withUsers("default"));
  world.cluster.want(withUsers("classed", "plain"));
  world.node.start();
  await world.pass(20_000);
  assert.ok(world.runs("uid-default"));
  assert.ok(!world.runs("uid-classed"));
  assert.equal(
    waitingMessage(world, "uid-classed"),
    'can\'t set `spec.hostUsers: false`, RuntimeClass handler "plain" does not support user namespaces',
  );
  world.runtime.handlers = [handler("", false), handler("plain", true)];
  await world.pass(10_000);
  world.cluster.want(withUsers("late"));
  await world.pass(30_000);
  assert.ok(world.runs("uid-classed"), "the runtime was replaced by one that can");
  assert.ok(!world.runs("uid-late"));
  assert.equal(
    waitingMessage(world, "uid-late"),
    "can't set `spec.hostUsers: false`, runtime does not support user namespaces",
  );
});

test("a node without a cluster goes by the default handler", async () => {
  const scene = new Scene();
  scene.node.add(podOf({ hostUsers: false, containers: [runs("c")] }, "able", "able"));
  await scene.pass(20_000);
  assert.ok(scene.world.running("able", "c"));
  scene.node.kill();
  scene.world.handlers = [handler("", false), handler("runc", true)];
  scene.node.start();
  scene.node.add(podOf({ hostUsers: false, containers: [runs("c")] }, "unable", "unable"));
  await scene.pass(20_000);
  assert.equal(scene.world.running("unable", "c"), undefined);
  assert.match(scene.entries("SandboxConfigError")[0]?.message ?? "", /runtime does not support user namespaces/);
});
