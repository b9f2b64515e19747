import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";

test("OOM kills are Events of their pod, and of the node when it was out of memory", async () => {
  const scene = new ClusterScene();
  const { cluster, node } = scene;
  cluster.want(clusterPod("web"));
  node.start();
  await scene.pass(10_000);
  const container = scene.runtime.running("uid-web", "main");
  assert.ok(container);
  const parent = scene.runtime.sandboxes.get(container.sandboxId)?.config.linux?.cgroupParent;
  const cgroup = `${parent}/${container.id}`;
  node.kernelLog.killed({ pid: 7, name: "helper", cgroup, machine: false });
  node.kernelLog.killed({ pid: 8, name: "cron", cgroup: "/system.slice/cron.service", machine: true });
  await scene.pass(10_000);
  const told = `The kernel killed process helper: the cgroup ${cgroup} was at its memory limit`;
  assert.deepEqual(scene.events("uid-web").slice(-1), [`Warning OOMKilling: ${told}`]);
  const ofNode = scene.nodeEvents.filter((event) => event.includes("OOM"));
  assert.deepEqual(ofNode, ["Warning SystemOOM: System OOM encountered, victim process: cron, pid: 8"]);
  assert.ok(scene.runs("uid-web"), "its other processes go on");
  // The next run does not report it again.
  node.kill();
  node.start();
  await scene.pass(60_000);
  assert.equal(scene.nodeEvents.filter((event) => event.includes("SystemOOM")).length, 1);
});

test("a container's own OOM kill while the node's kubelet was down is an Event of its pod after the restart, once", async () => {
  const scene = new ClusterScene();
  const { cluster, node } = scene;
  cluster.want(clusterPod("web"));
  node.start();
  await scene.pass(10_000);
  const container = scene.runtime.running("uid-web", "main");
  assert.ok(container);
  const parent = scene.runtime.sandboxes.get(container.sandboxId)?.config.linux?.cgroupParent;
  node.kill();
  node.kernelLog.killed({ pid: 7, name: "helper", cgroup: `${parent}/${container.id}`, machine: false });
  await scene.pass(10_000);
  const told = (): string[] => scene.events("uid-web").filter((event) => event.includes("OOMKilling"));
  const journaled = (): unknown[] => node.entries.filter(({ what }) => what === "OOMKilling").map((entry) => entry.pod);
  node.start();
  await scene.pass(60_000);
  assert.equal(told().length, 1, "reported by the next run");
  node.kill();
  node.start();
  await scene.pass(60_000);
  assert.equal(told().length, 1, "and by no other");
  assert.deepEqual(journaled(), [{ namespace: "default", name: "web", uid: "uid-web" }]);
});
