import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import type { Pod } from "../../api/pod.ts";
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

/** A job whose container fails its probe after 5 s, and ends well while it is being stopped, 20 s after its start. */
function sickJob(): Pod {
  const { metadata, spec } = clusterPod("web");
  const sickness = { afterMs: 5000, untilMs: 1e9, cycleMs: 1e9, manner: "errs" } as const;
  const path = healthPath(metadata.uid, "main", "liveness", sickness);
  const livenessProbe = { httpGet: { port: 80, path }, periodSeconds: 1, failureThreshold: 1 };
  const command = behaviourCommand({ exitAfterMs: 20_000, exitCode: 0, deaf: true, unstartable: false });
  const containers = spec.containers.map((container) => ({ ...container, command, livenessProbe }));
  return { metadata, spec: { ...spec, restartPolicy: "OnFailure", containers } };
}

test("a container that is stopped for its probe and exits with 0 has not ended for the server, under OnFailure", async () => {
  const world = new ClusterScene();
  const job = sickJob();
  const { uid } = job.metadata;
  world.cluster.want(job);
  const shown: unknown[] = [];
  world.cluster.server.registry.store.onChange(({ resource }) => {
    if (resource !== "pods") return;
    const [state = {}] = world.containerStates(uid);
    const [kind] = Object.keys(state);
    if (kind !== undefined && kind !== shown.at(-1)) shown.push(kind);
  });
  world.node.start();
  await world.pass(34_000);
  assert.deepEqual(shown, ["waiting", "running", "waiting", "running"]);
  assert.deepEqual(world.told(uid), ["Running", "True", 1]);
});

for (const [when, afterMs] of [
  ["is being stopped", 19_000],
  ["waits for its restart", 25_000],
] as const) {
  test(`nor if podwright is killed while it ${when}`, async () => {
    const world = new ClusterScene();
    const job = sickJob();
    const { uid } = job.metadata;
    world.cluster.want(job);
    world.node.start();
    const starts = (): number[] =>
      world.changes.flatMap(({ type, container }) => {
        return type === "started" && container !== undefined ? [container.startedMs] : [];
      });
    // Its second restart waits for 10 s.
    while (starts().length < 2) await world.pass(100);
    await world.pass(afterMs);
    assert.equal(world.runs(uid), when === "is being stopped");
    world.node.kill();
    await world.pass(2000);
    world.node.start();
    await world.pass(40_000 - afterMs);
    assert.equal(starts().length, 3);
    assert.equal(world.told(uid)[0], "Running");
    assert.deepEqual(world.deletions, []);
  });
}
