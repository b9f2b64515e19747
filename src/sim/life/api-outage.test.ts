import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import type { Pod } from "../../api/pod.ts";
import { fieldsAt } from "../api-server/values.ts";
import { behaviourCommand } from "../behaviour.ts";
import { SimRandom } from "../random.ts";
import { asStatic } from "./cluster.ts";
import { drawApiPod } from "./pod-references.ts";

const minuteMs = 60_000;

/** With a service account token that expires during an outage. */
function podWithToken(name: string): Pod {
  for (let seed = 1; ; seed++) {
    const drawn = drawApiPod(clusterPod(name), new SimRandom(seed));
    if (drawn.spec.volumes?.some(({ projected }) => projected !== undefined) === true) return drawn;
  }
}

/** Without pulls on restarts, whose duration is random. */
function withItsImage(pod: Pod): Pod {
  const containers = pod.spec.containers.map((container) => ({
    ...container,
    imagePullPolicy: "IfNotPresent" as const,
  }));
  return { ...pod, spec: { ...pod.spec, containers } };
}

/** Time until a crashing container of the pod runs again. */
async function restartMs(world: ClusterScene, uid: string): Promise<number> {
  const { changes, clock } = world;
  const [since, beginMs] = [changes.length, clock.nowMs];
  world.crash(uid);
  while (!changes.slice(since).some(({ type, podUid }) => type === "created" && podUid === uid)) {
    await world.pass(50);
    assert.ok(clock.nowMs - beginMs < minuteMs, `${uid} is restarted`);
  }
  return clock.nowMs - beginMs;
}

function observedGeneration({ cluster }: ClusterScene, uid: string): unknown {
  return fieldsAt(cluster.pod(uid)?.value ?? {}, "status")["observedGeneration"];
}

async function started(): Promise<ClusterScene> {
  const world = new ClusterScene();
  world.cluster.want(withItsImage(clusterPod("calm")));
  world.cluster.want(withItsImage(podWithToken("crashes")));
  world.cluster.want(clusterPod("deleted"));
  world.node.start();
  await world.pass(minuteMs);
  for (const uid of ["uid-calm", "uid-crashes", "uid-deleted"]) {
    assert.deepEqual(world.told(uid), ["Running", "True", 0], uid);
  }
  assert.equal(world.nodeReady, "True");
  return world;
}

for (const how of ["refuses", "silent"] as const) {
  test(`while the API server is down (${how}) for ten minutes pods keep running and restart, static pods start, and all is reported afterwards`, async () => {
    const world = await started();
    const { cluster, node } = world;
    const since = world.changes.length;
    cluster.server.goDown(how);
    await world.pass(minuteMs);
    world.crash("uid-crashes");
    cluster.want(asStatic(clusterPod("late")));
    node.staticsChanged();
    await world.pass(minuteMs);
    assert.ok(world.runs("uid-crashes"), "a crashed container was restarted");
    assert.ok(world.runs("uid-late"), "a static pod was started");
    await world.pass(8 * minuteMs);
    assert.deepEqual(world.stopped(since), []);
    cluster.server.comeUp(true);
    await world.pass(minuteMs);
    assert.deepEqual(world.told("uid-calm"), ["Running", "True", 0]);
    assert.deepEqual(world.told("uid-crashes"), ["Running", "True", 1]);
    assert.deepEqual(world.told("uid-late"), ["Running", "True", 0], "by its mirror pod");
    assert.equal(world.nodeReady, "True");
    assert.deepEqual(world.deletions, []);
    assert.deepEqual(world.stopped(since), []);
  });
}

test("a restart of podwright while the API server is down disturbs no pod, and the node continues when it is back", async () => {
  const world = await started();
  const { cluster, node } = world;
  const since = world.changes.length;
  cluster.server.goDown("refuses");
  await world.pass(minuteMs);
  node.kill();
  await world.pass(5000);
  node.start();
  await world.pass(2 * minuteMs);
  for (const uid of ["uid-calm", "uid-crashes", "uid-deleted"]) assert.ok(world.runs(uid), uid);
  world.crash("uid-crashes");
  await world.pass(minuteMs);
  assert.ok(world.runs("uid-crashes"), "a crashed container was restarted without the API server");
  cluster.want(asStatic(clusterPod("late")));
  node.staticsChanged();
  await world.pass(minuteMs);
  assert.ok(world.runs("uid-late"), "a static pod was started");
  cluster.delete("uid-deleted");
  await world.pass(5 * minuteMs);
  assert.deepEqual(world.stopped(since), [], "nobody has told the node");
  cluster.server.comeUp(false);
  await world.pass(2 * minuteMs);
  assert.deepEqual(world.told("uid-calm"), ["Running", "True", 0]);
  assert.deepEqual(world.told("uid-late"), ["Running", "True", 0], "by its mirror pod");
  assert.deepEqual([...new Set(world.stopped(since))], ["uid-deleted/main", "uid-deleted/sandbox"]);
  assert.deepEqual(world.deletions, ["default/deleted"]);
  assert.equal(world.nodeReady, "True");
});

for (const restarted of [false, true]) {
  const life = restarted ? "a life that has not seen it" : "a life that knows its objects";
  test(`containers restart at once while the API server is down, in ${life}`, async () => {
    const world = await started();
    world.cluster.server.goDown("silent");
    await world.pass(minuteMs);
    if (restarted) {
      world.node.kill();
      await world.pass(5000);
      world.node.start();
    }
    // Longer than the token is valid. A start that waited for objects would take five seconds.
    await world.pass(20 * minuteMs);
    for (const uid of ["uid-calm", "uid-crashes"]) assert.ok((await restartMs(world, uid)) < 5000, uid);
  });
}

test("a restored store of the API server is noticed: undone changes are undone here, and later ones are seen", async () => {
  const world = await started();
  const { cluster } = world;
  const { store } = cluster.server.registry;
  const backup = store.backup();
  const calm = clusterPod("calm");
  const tagged = calm.spec.containers.map((container) => ({ ...container, image: "busybox:2" }));
  cluster.change({ ...calm, spec: { ...calm.spec, containers: tagged } });
  cluster.delete("uid-deleted");
  cluster.want(clusterPod("undone"));
  await world.pass(2 * minuteMs);
  assert.ok(world.runs("uid-undone") && !world.runs("uid-deleted"));
  assert.equal(observedGeneration(world, "uid-calm"), 2);
  const since = world.changes.length;
  cluster.server.goDown("refuses");
  store.restore(backup);
  await world.pass(5000);
  cluster.server.comeUp(false);
  cluster.want(clusterPod("new"));
  await world.pass(minuteMs);
  assert.deepEqual(
    ["calm", "crashes", "new", "deleted", "undone"].map((name) => world.runs(`uid-${name}`)),
    [true, true, true, true, false],
  );
  assert.deepEqual(world.told("uid-new"), ["Running", "True", 0]);
  assert.deepEqual(
    [...new Set(world.stopped(since))].toSorted(),
    ["uid-calm/main", "uid-undone/main", "uid-undone/sandbox"],
    "of the first only the changed container",
  );
  assert.deepEqual(world.told("uid-calm"), ["Running", "True", 2]);
  assert.equal(observedGeneration(world, "uid-calm"), 1, "the pod's own again");
  assert.equal(world.nodeReady, "True");
});

test("a pod that has ended at the API server never runs again, even if the runtime has forgotten it", async () => {
  const world = await started();
  const command = behaviourCommand({ exitAfterMs: 1000, exitCode: 0, deaf: false, unstartable: false });
  const { metadata, spec } = clusterPod("over");
  const containers = spec.containers.map((container) => ({ ...container, command }));
  world.cluster.want({ metadata, spec: { ...spec, restartPolicy: "Never", containers } });
  await world.pass(minuteMs);
  const ended = ["Succeeded", "False", 0];
  assert.deepEqual(world.told("uid-over"), ended);
  world.node.kill();
  for (const { id, config } of world.runtime.sandboxes.values()) {
    if (config.metadata?.uid === "uid-over") world.runtime.removeSandbox(id);
  }
  const since = world.changes.length;
  world.node.start();
  await world.pass(2 * minuteMs);
  const made = world.changes.slice(since).filter(({ type, podUid }) => type === "created" && podUid === "uid-over");
  assert.deepEqual(made, []);
  assert.deepEqual(world.told("uid-over"), ended);
});
