import assert from "node:assert/strict";
import { test } from "node:test";
import { deaf, ends as exits, podOf, Scene } from "../../test/support/sim-scene.ts";

test("a pod that returns with its UID before it is gone counts as restarted, static or not, once it starts", async () => {
  const scene = new Scene();
  const restarted = (): string[] => scene.counted("kubelet_restarted_pods_total");
  const spec = { terminationGracePeriodSeconds: 7, containers: [deaf("c")] };
  const annotations = { "kubernetes.io/config.source": "file" };
  const own = podOf(spec, "a".repeat(32), "own");
  const pods = [podOf(spec), { ...own, metadata: { ...own.metadata, annotations } }, podOf(spec, "uid-3", "third")];
  for (const pod of pods) scene.node.add(pod);
  await scene.pass(5000);
  for (const pod of pods) scene.node.remove(pod.metadata.uid);
  await scene.pass(1000);
  for (const pod of pods) scene.node.add(pod);
  // One of them is undesired before its turn comes.
  scene.node.remove("uid-3");
  assert.deepEqual(restarted().toSorted(), [" 0", "true 0"]);
  await scene.pass(30_000);
  assert.deepEqual(restarted().toSorted(), [" 1", "true 1"]);
  // What comes back when everything of it is gone is a new pod.
  scene.node.remove("uid-1");
  await scene.pass(30_000);
  scene.node.add(podOf(spec));
  await scene.pass(30_000);
  assert.deepEqual(restarted().toSorted(), [" 1", "true 1"]);
});

test("failed inspections do not bring back a removed pod", async () => {
  const scene = new Scene();
  scene.node.add(podOf({ containers: [deaf("c")], terminationGracePeriodSeconds: 1 }));
  await scene.pass(5000);
  scene.world.onChange(({ type }) => {
    if (type === "sandboxRemoved") scene.faults.begin({ failBefore: 1 }, 8000);
  });
  scene.node.remove("uid-1");
  await scene.pass(60_000);
  const ends = scene.entries("PodTerminating", "PodFinished").map(({ what }) => what);
  assert.deepEqual(ends, ["PodTerminating", "PodFinished"]);
});

test("a pod that ends by itself is reported once, after its last status, and a rejected one is not", async () => {
  const scene = new Scene({ cpu: "1" });
  const seen: string[] = [];
  scene.node.ask(
    ({ kubelet }) => void kubelet.workers.onEnded((uid) => void seen.push(`${uid} ${scene.status(uid)?.phase}`)),
  );
  scene.node.add(podOf({ containers: [exits("c", 1000, 0)], restartPolicy: "Never" }));
  const resources = { requests: { cpu: "2" } };
  scene.node.add(podOf({ containers: [deaf("c", { resources })] }, "uid-2", "large"));
  await scene.pass(300_000);
  assert.equal(scene.status("uid-2")?.phase, "Failed");
  assert.deepEqual(seen, ["uid-1 Succeeded"]);
  scene.node.remove("uid-1");
  await scene.pass(60_000);
  // Under its UID it is another pod.
  scene.node.add(podOf({ containers: [exits("c", 1000, 1)], restartPolicy: "Never" }));
  await scene.pass(60_000);
  assert.deepEqual(seen, ["uid-1 Succeeded", "uid-1 Failed"]);
});
