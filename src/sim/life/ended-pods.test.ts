import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import { behaviourCommand } from "../behaviour.ts";
import { healthPath } from "../health.ts";

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

test("a container that is stopped for its probe and exits with 0 has not ended for the server, under OnFailure", async () => {
  const world = new ClusterScene();
  const { metadata, spec } = clusterPod("web");
  const sickness = { afterMs: 5000, untilMs: 1e9, cycleMs: 1e9, manner: "errs" } as const;
  const path = healthPath(metadata.uid, "main", "liveness", sickness);
  const livenessProbe = { httpGet: { port: 80, path }, periodSeconds: 1, failureThreshold: 1 };
  // It ends by itself while it is being stopped.
  const command = behaviourCommand({ exitAfterMs: 20_000, exitCode: 0, deaf: true, unstartable: false });
  const containers = spec.containers.map((container) => ({ ...container, command, livenessProbe }));
  world.cluster.want({ metadata, spec: { ...spec, restartPolicy: "OnFailure", containers } });
  const shown: unknown[] = [];
  world.cluster.server.registry.store.onChange(({ resource }) => {
    if (resource !== "pods") return;
    const [state = {}] = world.containerStates(metadata.uid);
    const [kind] = Object.keys(state);
    if (kind !== undefined && kind !== shown.at(-1)) shown.push(kind);
  });
  world.node.start();
  await world.pass(34_000);
  assert.deepEqual(shown, ["waiting", "running", "waiting", "running"]);
  assert.deepEqual(world.told(metadata.uid), ["Running", "True", 1]);
});
