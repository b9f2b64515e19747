import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { runtimeStatus, statusInputs } from "../../test/support/runtime-status.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import { apiPod } from "../../test/support/status-world.ts";
import type { PodStatus } from "../api/status.ts";
import { podUid } from "../base/ids.ts";
import type { ApiPod } from "../sources/api-pod.ts";
import { generateAPIPodStatus } from "./generate.ts";
import { IgnoredPods } from "./ignored-pods.ts";
import { StatusManager } from "./status-manager.ts";

interface World {
  readonly clock: ManualClock;
  readonly statuses: StatusManager;
  readonly pods: IgnoredPods;
  readonly released: string[];
  /** UIDs of pods that hold resources of the node. */
  readonly here: Set<string>;
  ignored: ApiPod[];
}

async function withWorld(work: (world: World) => Promise<void>): Promise<void> {
  const clock = new ManualClock(0);
  const statuses = new StatusManager(new MemoryRecorder());
  const [released, here]: [string[], Set<string>] = [[], new Set()];
  const pods = new IgnoredPods({
    ...{ clock, statuses },
    ignored: () => world.ignored,
    mayHave: (uid) => here.has(uid),
    released: (uid) => released.push(uid),
  });
  const world: World = { clock, statuses, pods, released, here, ignored: [] };
  const stop = new AbortController();
  const ended = pods.run(stop.signal);
  await work(world);
  stop.abort(new Error("the test is over"));
  await ended;
  assert.deepEqual(clock.waits, []);
}

const deletionTimestamp = "2026-11-20T14:02:00Z";

test("a pod whose name is taken reports that until it gets the name, and is forgotten when it is gone", async () => {
  await withWorld(async ({ clock, statuses, pods, ...world }) => {
    const scheduled = { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime: null } as const;
    const pod = apiPod("a", { generation: 1 }, { phase: "Pending", conditions: [scheduled] });
    world.ignored.push(pod);
    pods.wake();
    await clock.advance(0);
    const told: PodStatus = {
      ...{ phase: "Pending", conditions: [scheduled], observedGeneration: 1, qosClass: "BestEffort" },
      reason: "NameTaken",
      message: "a static pod of this node has the same name: this pod starts once it is gone",
    };
    assert.deepEqual(statuses.get(podUid("uid-a")), told);
    await clock.advance(60_000);
    assert.equal(statuses.getVersioned(podUid("uid-a"))?.version, 1, "it is said once");
    const begun = generateAPIPodStatus(statusInputs(pod, { podStatus: runtimeStatus(pod, [], []), previous: told }));
    assert.deepEqual([begun.phase, begun.reason, begun.message], ["Pending", undefined, undefined]);
    world.here.add("uid-a");
    pods.podGone(podUid("uid-a"));
    assert.ok(statuses.get(podUid("uid-a")), "its worker forgets it");
    world.here.delete("uid-a");
    pods.podGone(podUid("uid-a"));
    assert.equal(statuses.get(podUid("uid-a")), undefined);
  });
});

test("a deleted pod whose name is taken may be removed once it holds no resources of the node", async () => {
  await withWorld(async ({ clock, statuses, pods, released, here, ignored }) => {
    here.add("uid-a");
    ignored.push(apiPod("a", { deletionTimestamp }), apiPod("b", { deletionTimestamp }), apiPod("c"));
    pods.wake();
    await clock.advance(0);
    assert.deepEqual(released, ["uid-b"]);
    here.delete("uid-a");
    await clock.advance(5000);
    assert.ok(released.includes("uid-a") && !released.includes("uid-c"));
    assert.equal(statuses.get(podUid("uid-a")), undefined);
  });
});

test("a pod that has been Running while its name is taken stays so, and is not ready", async () => {
  await withWorld(async ({ clock, statuses, ignored }) => {
    const since = "2026-11-20T14:02:00Z";
    const was = { lastProbeTime: null, lastTransitionTime: since };
    const conditions = [
      ...["Ready", "ContainersReady", "Initialized"].map((type) => ({ type, status: "True" as const, ...was })),
    ];
    ignored.push(apiPod("a", {}, { phase: "Running", conditions }));
    await clock.advance(60_000);
    const { phase, reason, conditions: told = [] } = statuses.get(podUid("uid-a")) ?? {};
    assert.deepEqual([phase, reason], ["Running", "NameTaken"]);
    assert.deepEqual(
      told.map(({ type, status, lastTransitionTime, ...more }) => [
        type,
        status,
        lastTransitionTime === since,
        more.reason,
      ]),
      [
        ["Ready", "False", false, "NameTaken"],
        ["ContainersReady", "False", false, "NameTaken"],
        ["Initialized", "True", true, undefined],
      ],
    );
    assert.equal(statuses.getVersioned(podUid("uid-a"))?.version, 1, "it is said once");
  });
});

test("an ended pod, or one that holds resources of the node, is not reported as waiting for its name", async () => {
  await withWorld(async ({ clock, statuses, pods, here, ignored }) => {
    here.add("uid-c");
    ignored.push(apiPod("a", {}, { phase: "Succeeded" }), apiPod("b", {}, { phase: "Failed" }), apiPod("c"));
    pods.wake();
    await clock.advance(0);
    assert.deepEqual(
      ["uid-a", "uid-b", "uid-c"].map((uid) => statuses.get(podUid(uid))),
      [undefined, undefined, undefined],
    );
  });
});
