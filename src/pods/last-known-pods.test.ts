import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { runs, Scene } from "../../test/support/sim-scene.ts";
import { silentLog } from "../../test/support/sources.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { keepSpec } from "../runtime/layout/kept-spec.ts";
import { MemoryFiles } from "../sim/files.ts";
import { ActiveDeadline } from "./active-deadline.ts";
import { lastKnownPods } from "./last-known-pods.ts";
import { PodCheckpoint } from "./pod-checkpoint.ts";
import { RestartTimes } from "./restart-times.ts";

const node = { rootDirectory: "/kubelet" };

function apiPod(uid: string, image = "one", source = "api", more: Partial<Pod["metadata"]> = {}): Pod {
  const annotations = { "kubernetes.io/config.source": source };
  return podWith({ containers: [{ name: "c", image }] }, { name: uid, uid, annotations, ...more });
}

async function world() {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  const checkpoint = (uid: string): PodCheckpoint => {
    const deps = { files, node, log: silentLog };
    return new PodCheckpoint(deps, podUid(uid), new ActiveDeadline(clock), new RestartTimes(clock, 300_000));
  };
  const keep = async (pod: Pod): Promise<void> => {
    await files.makeDirectory(`/kubelet/pods/${pod.metadata.uid}`, 0o750);
    await keepSpec(files, node, pod, "start");
  };
  const known = async (...running: readonly string[]): Promise<(string | undefined)[]> =>
    (await lastKnownPods(files, node, running.map(podUid))).map(
      ({ metadata, spec }) => `${metadata.uid} ${spec.containers[0]?.image}`,
    );
  return { files, checkpoint, keep, known };
}

test("running pods of the API server keep their last known specs, others do not", async () => {
  const { checkpoint, keep, known } = await world();
  await keep(apiPod("a"));
  await keep(apiPod("static", "one", "file"));
  await keep(apiPod("idle"));
  await checkpoint("a").save(apiPod("a", "two"));
  assert.deepEqual(await known("a", "static", "unknown", "", "../a", "a"), ["a two"]);
});

test("a pod that was being stopped is no longer desired, for whatever reason", async () => {
  const { files, checkpoint, keep, known } = await world();
  await keep(apiPod("stopping"));
  await checkpoint("stopping").stopping(undefined, undefined);
  await keep(apiPod("deleted", "one", "api", { deletionTimestamp: "2026-11-20T14:02:00Z" }));
  await keep(apiPod("unreadable"));
  await files.write("/kubelet/pods/unreadable/podwright.json", "{", 0o600);
  assert.deepEqual(await known("stopping", "deleted", "unreadable"), []);
});

test("a pod is stored for root only, and only once it is admitted", async () => {
  const { files, checkpoint, keep, known } = await world();
  await checkpoint("new").save(apiPod("new"));
  assert.deepEqual(await known("new"), []);
  await keep(apiPod("a"));
  assert.equal((await files.stat("/kubelet/pods/a/podwright-pod.json"))?.mode, 0o600);
});

test("a pod deleted or removed while the runtime cannot be listed is no longer desired in the next run", async () => {
  for (const isGone of [false, true]) {
    const { node: sim, clock, faults, world: runtime } = new Scene();
    const metadata = {
      name: "web",
      namespace: "default",
      uid: podUid("uid-1"),
      annotations: apiPod("any").metadata.annotations,
    };
    const pod: Pod = { metadata, spec: { containers: [runs("c")] } };
    const known = async (): Promise<number> =>
      (await lastKnownPods(sim.files, { rootDirectory: "/var/lib/kubelet" }, [podUid("uid-1")])).length;
    sim.add(pod);
    await clock.run(5000);
    assert.equal(await known(), 1);
    sim.kill();
    faults.begin({ hang: 1 }, 60_000);
    sim.start();
    await clock.run(6000);
    if (isGone) sim.remove("uid-1");
    else sim.update({ ...pod, metadata: { ...metadata, deletionTimestamp: "2026-11-20T14:02:00Z" } });
    await clock.run(8000);
    assert.equal(await known(), 0, isGone ? "gone" : "deleted");
    assert.ok(runtime.running("uid-1", "c"), "nothing could be stopped yet");
  }
});
