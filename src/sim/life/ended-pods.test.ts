import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import { behaviourCommand } from "../behaviour.ts";

const minuteMs = 60_000;

test("a pod's references are watched until it has ended, and not again after a change or a restart", async () => {
  const world = new ClusterScene();
  const { cluster, node } = world;
  const nothingIsWatched = async (): Promise<void> => {
    for (let look = 0; look < 2000; look++) {
      await world.pass(10);
      assert.equal(cluster.server.watchesOf("configmaps"), 0);
    }
  };
  const command = behaviourCommand({ exitAfterMs: 3 * minuteMs, exitCode: 0, deaf: false, unstartable: false });
  const { metadata, spec } = clusterPod("job");
  const containers = spec.containers.map((container) => ({ ...container, command }));
  const volumes = [{ name: "own", configMap: { name: "settings", optional: true } }];
  const job = { metadata, spec: { ...spec, restartPolicy: "Never" as const, containers, volumes } };
  cluster.want(job);
  node.start();
  await world.pass(minuteMs);
  assert.deepEqual(world.told("uid-job"), ["Running", "True", 0]);
  assert.equal(cluster.server.watchesOf("configmaps"), 1);

  await world.pass(4 * minuteMs);
  assert.deepEqual(world.told("uid-job"), ["Succeeded", "False", 0]);
  assert.equal(cluster.server.watchesOf("configmaps"), 0);
  cluster.change({ ...job, metadata: { ...metadata, labels: { seen: "yes" } } });
  await nothingIsWatched();
  await world.pass(minuteMs);
  assert.equal(cluster.server.watchesOf("configmaps"), 0);

  node.kill();
  await world.pass(5000);
  node.start();
  await nothingIsWatched();
});
