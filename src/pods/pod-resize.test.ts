import assert from "node:assert/strict";
import { test } from "node:test";
import { podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import type { Pod } from "../api/pod.ts";
import { eventsOf } from "../events/entry-events.ts";
import { CriError } from "../ports/cri.ts";

function asking(cpu: string, generation: number): Pod {
  const pod = podOf({ containers: [runs("c", { resources: { limits: { cpu }, requests: { cpu } } })] });
  return { ...pod, metadata: { ...pod.metadata, generation } };
}

function summary(cpu: string, generation: number, error = ""): string {
  const resources = { limits: { cpu }, requests: { cpu } };
  return JSON.stringify({ containers: [{ name: "c", resources }], generation, ...(error && { error }) });
}

/** Messages of the events of the pod's resizes. */
function told(scene: Scene): string[] {
  return scene.node.entries
    .filter(({ what }) => what.startsWith("Resize"))
    .flatMap((entry) => eventsOf(entry).map(({ reason, message }) => `${reason}: ${message}`));
}

/** A pod that has been resized, on a disk that is full for another second. */
async function resizedOnFullDisk(): Promise<Scene> {
  const scene = new Scene();
  scene.node.add(asking("400m", 1));
  await scene.pass(5000);
  scene.faults.begin({ diskFull: true }, 5000);
  scene.node.update(asking("300m", 2));
  await scene.pass(4000);
  assert.ok(scene.entries("UpdateContainerResources").length > 0);
  return scene;
}

test("a resize is reported at its start and end, with the containers' resources", async () => {
  const scene = new Scene({ cpu: "1" });
  scene.node.add(asking("400m", 1));
  await scene.pass(5000);
  scene.node.update(asking("300m", 2));
  await scene.pass(5000);
  scene.node.update(asking("2", 3));
  await scene.pass(5000);
  const [started, completed, deferred = "", ...more] = told(scene);
  assert.equal(started, `ResizeStarted: Pod resize started: ${summary("300m", 2)}`);
  assert.equal(completed, `ResizeCompleted: Pod resize completed: ${summary("300m", 2)}`);
  assert.match(deferred, /^ResizeDeferred: Pod resize Deferred: \{"containers":.*"generation":3,"error":"Node /u);
  assert.deepEqual(more, []);
});

test("a failed resize is reported once with its reason, and with its own generation when it finally succeeds", async () => {
  const scene = new Scene();
  const update = scene.world.updateResources.bind(scene.world);
  scene.node.add(asking("400m", 1));
  await scene.pass(5000);
  scene.world.updateResources = () => {
    throw new CriError("Unknown", "UpdateContainerResources", "no");
  };
  scene.node.update(asking("300m", 2));
  await scene.pass(40_000);
  scene.node.update({ ...asking("300m", 3), spec: { ...asking("300m", 3).spec, activeDeadlineSeconds: 9000 } });
  scene.world.updateResources = update;
  await scene.pass(60_000);
  const [started, failed = "", completed, ...more] = told(scene);
  assert.equal(started, `ResizeStarted: Pod resize started: ${summary("300m", 2)}`);
  assert.match(failed, /^ResizeError: Pod resize error: \{"containers":.*"generation":2,"error":".*no"\}$/u);
  assert.equal(completed, `ResizeCompleted: Pod resize completed: ${summary("300m", 2)}`);
  assert.deepEqual(more, []);
});

test("a resize during a full disk is recorded as soon as the disk has space", async () => {
  const scene = await resizedOnFullDisk();
  await scene.pass(180_000);
  const text = new TextDecoder().decode(await scene.node.files.read("/var/lib/kubelet/actuated_pods_state", 1 << 20));
  assert.match(text, /300m/u);
  assert.doesNotMatch(text, /400m/u);
});

test("a resize that an earlier run could not record is not repeated", async () => {
  const scene = await resizedOnFullDisk();
  const updates = scene.entries("UpdateContainerResources").length;
  scene.node.kill();
  await scene.pass(5000);
  scene.node.start();
  await scene.pass(60_000);
  assert.equal(scene.entries("UpdateContainerResources").length, updates);
  assert.equal(scene.status()?.containerStatuses?.[0]?.resources?.requests?.["cpu"], "300m");
});

test("a resize that fails at the pod's cgroup is not retried in a loop", async () => {
  const scene = new Scene();
  const { cgroups } = scene.node;
  const apply = cgroups.apply.bind(cgroups);
  let fails = false;
  cgroups.apply = (...args) => (fails ? Promise.reject(new Error("it can't be written")) : apply(...args));
  scene.node.kill();
  scene.node.start();
  scene.node.add(asking("400m", 1));
  await scene.pass(5000);
  fails = true;
  scene.node.update(asking("300m", 2));
  await scene.pass(60_000);
  fails = false;
  const updates = scene.entries("UpdateContainerResources").filter(({ kind }) => kind === "action");
  assert.ok(updates.length >= 1 && updates.length <= 6, `${updates.length} updates`);
  assert.ok(scene.entries("ResizeCompleted", "ResizeError").length <= 6);
  await scene.pass(180_000);
  const [cgroup] = [...scene.node.cgroups.applied].filter(([path]) => path.endsWith("/poduid-1"));
  assert.equal(cgroup?.[1].cpuQuotaMicroseconds, 30_000);
});
