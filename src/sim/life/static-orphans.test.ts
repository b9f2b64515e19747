import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../../base/ids.ts";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import type { Pod } from "../../api/pod.ts";
import { fieldsAt } from "../api-server/values.ts";
import { behaviourCommand } from "../behaviour.ts";
import { asStatic } from "./cluster.ts";

const minuteMs = 60_000;

/** The same pod in another version of its manifest has another UID. */
function version(name: string, uid: string): Pod {
  const pod = clusterPod(name);
  return asStatic({ ...pod, metadata: { ...pod.metadata, uid: podUid(uid) } });
}

/** podwright is restarted without the API server, and manifests have changed meanwhile. */
async function afterChange(change: (world: ClusterScene) => void): Promise<ClusterScene> {
  const world = new ClusterScene();
  const { cluster, node } = world;
  cluster.want(clusterPod("calm"));
  cluster.want(version("static", "uid-old"));
  node.start();
  await world.pass(minuteMs);
  assert.ok(world.runs("uid-calm") && world.runs("uid-old"));
  node.kill();
  cluster.server.goDown("refuses");
  change(world);
  node.start();
  return world;
}

test("a static pod that was changed while podwright was down replaces the old one without the API server", async () => {
  const world = await afterChange(({ cluster }) => {
    cluster.delete("uid-old");
    cluster.want(version("static", "uid-new"));
  });
  const since = world.changes.length;
  await world.pass(minuteMs);
  assert.deepEqual([world.runs("uid-old"), world.runs("uid-new")], [false, true]);
  assert.deepEqual([...new Set(world.stopped(since))], ["uid-old/main", "uid-old/sandbox"]);
  await world.pass(5 * minuteMs);
  assert.ok(world.runs("uid-calm"), "of the server's pods nothing is known yet");
  world.cluster.server.comeUp(false);
  await world.pass(minuteMs);
  assert.deepEqual(world.told("uid-calm"), ["Running", "True", 0]);
  assert.deepEqual(world.told("uid-new"), ["Running", "True", 0], "by its mirror pod");
  assert.equal(world.cluster.mirrors().length, 1);
});

test("a static pod whose manifest went while podwright was down stops without the API server", async () => {
  const world = await afterChange(({ cluster }) => cluster.delete("uid-old"));
  await world.pass(minuteMs);
  assert.deepEqual([world.runs("uid-old"), world.runs("uid-calm")], [false, true]);
});

test("a static pod's mirror pod is deleted or replaced when the pod has stopped", async () => {
  const world = new ClusterScene();
  const { cluster, node } = world;
  const command = behaviourCommand({ exitAfterMs: undefined, exitCode: 0, deaf: true, unstartable: false });
  const slow = (uid: string): Pod => {
    const { metadata, spec } = version("static", uid);
    const containers = spec.containers.map((container) => ({ ...container, command }));
    return { metadata, spec: { ...spec, terminationGracePeriodSeconds: 20, containers } };
  };
  const mirrored = (): unknown[] =>
    cluster.mirrors().map(({ value }) => value.metadata.annotations?.["kubernetes.io/config.mirror"]);
  cluster.want(slow("uid-1"));
  node.start();
  await world.pass(minuteMs);
  cluster.delete("uid-1");
  cluster.want(slow("uid-2"));
  node.staticsChanged();
  await world.pass(10_000);
  assert.deepEqual([world.runs("uid-1"), mirrored()], [true, ["uid-1"]]);
  await world.pass(15_000);
  assert.deepEqual([world.runs("uid-2"), mirrored()], [true, ["uid-2"]]);
  cluster.delete("uid-2");
  node.kill();
  node.start();
  await world.pass(10_000);
  assert.deepEqual([world.runs("uid-2"), mirrored()], [true, ["uid-2"]], "also when it is an orphan");
  await world.pass(15_000);
  assert.deepEqual([world.runs("uid-2"), mirrored()], [false, []]);
});

test("a static pod waits for an API server's pod with its name, and reports it; a restart does not change their order", async () => {
  const world = new ClusterScene();
  const { cluster, node } = world;
  cluster.want(clusterPod("taken"));
  node.start();
  await world.pass(minuteMs);
  const since = world.changes.length;
  node.kill();
  cluster.server.goDown("refuses");
  cluster.want(version("taken", "uid-static"));
  node.start();
  await world.pass(5000);
  const waiting = node.statuses?.get(podUid("uid-static"))?.containerStatuses?.[0]?.state.waiting;
  assert.deepEqual(waiting, {
    reason: "ContainerCreating",
    message: "waiting for the removal of pod uid-taken of the same name",
  });
  await world.pass(minuteMs);
  cluster.server.comeUp(false);
  await world.pass(minuteMs);
  node.kill();
  node.start();
  await world.pass(minuteMs);
  assert.deepEqual([world.runs("uid-taken"), world.runs("uid-static"), world.stopped(since)], [true, false, []]);
  assert.deepEqual(world.told("uid-taken"), ["Running", "True", 0]);
  cluster.delete("uid-taken");
  await world.pass(minuteMs);
  assert.deepEqual([world.runs("uid-taken"), world.runs("uid-static")], [false, true]);
});

/** A static pod is added without the API server, which returns with a pod of the same name. */
async function withTakenName(): Promise<ClusterScene> {
  const world = new ClusterScene();
  const { cluster, node } = world;
  node.start();
  await world.pass(minuteMs);
  cluster.server.goDown("refuses");
  cluster.want(version("taken", "uid-static"));
  node.staticsChanged();
  await world.pass(minuteMs);
  cluster.want(clusterPod("taken"));
  cluster.server.comeUp(false);
  await world.pass(30_000);
  assert.deepEqual([world.runs("uid-static"), cluster.mirrors()], [true, []]);
  return world;
}

function phaseAndReason({ cluster }: ClusterScene): unknown[] {
  const { phase, reason } = fieldsAt(cluster.pod("uid-taken")?.value ?? {}, "status");
  return [phase, reason];
}

test("an API server's pod with the name of a static pod reports it, and can be deleted", async () => {
  const world = await withTakenName();
  assert.deepEqual(phaseAndReason(world), ["Pending", "NameTaken"]);
  assert.deepEqual(world.events("uid-taken"), [
    'Warning FailedValidation: The pod is ignored: a static pod of the node has the same name "taken"',
  ]);
  world.cluster.delete("uid-taken");
  await world.pass(5000);
  assert.equal(world.cluster.pod("uid-taken"), undefined);
  assert.equal(world.cluster.mirrors().length, 1);
  assert.deepEqual(world.told("uid-static"), ["Running", "True", 0]);
});

test("an API server's pod with the name of a static pod starts when that is removed", async () => {
  const world = await withTakenName();
  world.cluster.delete("uid-static");
  world.node.staticsChanged();
  await world.pass(minuteMs);
  assert.deepEqual([world.runs("uid-static"), world.runs("uid-taken")], [false, true]);
  assert.deepEqual(phaseAndReason(world), ["Running", undefined]);
});

test("a static pod of which only a dead sandbox is left takes no host port from a pod that runs", async () => {
  const world = new ClusterScene();
  const { cluster, node, runtime } = world;
  const withPort = ({ metadata, spec }: Pod): Pod => {
    const ports = [{ containerPort: 80, hostPort: 80, protocol: "TCP" as const }];
    return { metadata, spec: { ...spec, containers: spec.containers.map((container) => ({ ...container, ports })) } };
  };
  const isStatic = withPort(version("static", "uid-static"));
  cluster.want(isStatic);
  node.start();
  await world.pass(minuteMs);
  const [sandbox] = runtime.sandboxes.values();
  assert.ok(sandbox);
  cluster.delete("uid-static");
  node.staticsChanged();
  await world.pass(minuteMs);
  cluster.want(withPort(clusterPod("holder")));
  await world.pass(minuteMs);
  assert.ok(world.runs("uid-holder"));

  node.kill();
  runtime.stopSandbox(runtime.runSandbox(sandbox.config));
  cluster.want(isStatic);
  cluster.server.goDown("refuses");
  node.start();
  await world.pass(minuteMs);
  cluster.server.comeUp(false);
  await world.pass(minuteMs);
  assert.deepEqual([world.runs("uid-static"), world.runs("uid-holder")], [false, true]);
  assert.deepEqual(world.told("uid-holder"), ["Running", "True", 0]);
});
