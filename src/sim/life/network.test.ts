import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";

test("pods wait for the runtime's network except those with host network, and start as soon as it is ready", async () => {
  const scene = new ClusterScene();
  const { cluster, changes } = scene;
  const onHost = clusterPod("on-host");
  cluster.want({ ...onHost, spec: { ...onHost.spec, hostNetwork: true } });
  cluster.want(clusterPod("waits"));
  scene.faults.begin({ noNetwork: true }, 60_000);
  scene.node.start();
  await scene.pass(59_000);
  assert.equal(scene.nodeReady, "False");
  assert.ok(scene.runs("uid-on-host"));
  assert.ok(
    changes.every(({ podUid }) => podUid === "uid-on-host"),
    "the runtime is asked for nothing",
  );
  const why = "reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";
  const message = `network is not ready: container runtime network not ready: NetworkReady=false ${why}`;
  const [{ waiting } = {}] = scene.containerStates("uid-waits");
  assert.deepEqual(waiting, { reason: "ContainerCreating", message });
  assert.deepEqual(scene.events("uid-waits"), [`Warning NetworkNotReady: ${message}`]);
  await scene.pass(5000);
  assert.ok(scene.runs("uid-waits"), "a moment after the network is up");
  assert.equal(scene.nodeReady, "True");
});
