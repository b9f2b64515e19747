import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import { runs } from "../../../test/support/sim-scene.ts";
import { StatusRules } from "../rules/status.ts";
import { conditionOf } from "./node-controller.ts";
import { fieldsAt, listAt } from "../api-server/values.ts";

const uid = "uid-web";

/** A pod whose container `main` restarts it by its exit with 88. */
async function started(): Promise<ClusterScene> {
  const scene = new ClusterScene();
  const pod = clusterPod("web");
  const source = runs("main", {
    restartPolicy: "Never",
    restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [88] } }],
  });
  scene.cluster.want({ ...pod, spec: { ...pod.spec, containers: [source, runs("other")] } });
  scene.node.start();
  await scene.pass(30_000);
  assert.equal(restarting(scene), "False");
  return scene;
}

function restarting({ cluster }: ClusterScene): unknown {
  return conditionOf(cluster.pod(uid)?.value ?? assert.fail(), "AllContainersRestarting");
}

function exits({ runtime }: ClusterScene): void {
  runtime.exit(runtime.running(uid, "main") ?? assert.fail(), 88, "Error");
}

/** Each container's restarts, and the reason of its last end. */
function lastEnds({ cluster }: ClusterScene): (readonly unknown[])[] {
  const status = fieldsAt(cluster.pod(uid)?.value ?? {}, "status");
  return listAt(status, "containerStatuses").map((each) => {
    return [each["restartCount"], fieldsAt(fieldsAt(each, "lastState"), "terminated")["reason"]];
  });
}

/** podwright has restarted all containers for the second time, is killed before it can say so, and runs again. */
async function killedUnheard(): Promise<ClusterScene> {
  const scene = await started();
  exits(scene);
  await scene.pass(5000);
  assert.equal(restarting(scene), "False", "the first time, without a back-off");
  exits(scene);
  await scene.pass(3000);
  assert.equal(restarting(scene), "True");
  scene.cluster.server.goDown("refuses");
  await scene.pass(20_000);
  assert.ok(scene.runs(uid), "it was restarted without the API server");
  scene.node.kill();
  scene.cluster.server.comeUp(false);
  assert.equal(restarting(scene), "True");
  const since = scene.changes.length;
  scene.node.start();
  await scene.pass(60_000);
  assert.deepEqual(
    scene.changes.slice(since).filter(({ type }) => type !== "probed"),
    [],
    "nothing is restarted again",
  );
  return scene;
}

test("AllContainersRestarting becomes False though podwright is killed when it has restarted them, before it can say so", async () => {
  const scene = await killedUnheard();
  const { clock, runtime: world, node } = scene;
  const rules = new StatusRules({ clock, world, node, pods: node.desired, unwanted: new Map() }, assert.fail);
  assert.deepEqual(rules.disagreements(), []);
  assert.equal(restarting(scene), "False");
  assert.deepEqual(scene.told(uid), ["Running", "True", 2]);
  assert.deepEqual(lastEnds(scene), [
    [2, "RestartingAllContainers"],
    [2, "RestartingAllContainers"],
  ]);
});

test("a container that is lost after that was not removed to restart all", async () => {
  const scene = await killedUnheard();
  const waits = new Set<string>();
  scene.node.statuses?.onChange(({ status }) => {
    for (const { state } of status.containerStatuses ?? []) if (state.waiting) waits.add(state.waiting.reason ?? "");
  });
  scene.runtime.removeContainer(scene.runtime.running(uid, "other")?.id ?? assert.fail());
  await scene.pass(60_000);
  assert.deepEqual([...waits], ["ContainerCreating"]);
  assert.equal(lastEnds(scene)[1]?.[0], 3);
  assert.equal(restarting(scene), "False");
});

test("the next run continues a restart of all containers that podwright was killed in", async () => {
  const scene = await started();
  const kill = scene.runtime.onChange(({ type }) => {
    if (type === "removed") scene.node.kill();
  });
  exits(scene);
  await scene.pass(5000);
  kill[Symbol.dispose]();
  assert.equal(scene.node.isUp, false);
  const since = scene.changes.length;
  scene.node.start();
  await scene.pass(60_000);
  const removed = scene.changes.slice(since).filter(({ type }) => type === "removed");
  assert.deepEqual(
    removed.map(({ container }) => container?.config.metadata?.name),
    ["main"],
    "the one that has exited, last",
  );
  assert.deepEqual(scene.told(uid), ["Running", "True", 1]);
  assert.equal(restarting(scene), "False");
});

test("a container that is stopped to restart all has upstream's Event, with the cause", async () => {
  const scene = await started();
  exits(scene);
  await scene.pass(10_000);
  const why = "container main exited with code 88 (Error)";
  const [told, ...more] = scene.events(uid).filter((event) => event.includes("Killing"));
  assert.deepEqual(more, [], "only the one that still ran");
  assert.equal(told?.slice(0, told.indexOf(why)), "Normal Killing: killing: ");
});
