import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { runtimeContainer, runtimeStatus, statusInputs } from "../../test/support/runtime-status.ts";
import type { Pod } from "../api/pod.ts";
import type { JournalInput } from "../journal/entry.ts";
import { generateAPIPodStatus } from "./generate.ts";
import { type StatusChange, StatusManager } from "./status-manager.ts";

const pod: Pod = {
  metadata: { name: "p", namespace: "ns", uid: podUid("u") },
  spec: { containers: [{ name: "c" }], restartPolicy: "Never" },
};
const cause = { code: "Resync", message: "the test says so" } as const;
const running = runtimeStatus(pod, [runtimeContainer("c")]);
const exited = runtimeStatus(pod, [runtimeContainer("c", { state: "exited", exitCode: 3, reason: "Error" })]);

const pending = generateAPIPodStatus(statusInputs(pod));
const runningStatus = generateAPIPodStatus(statusInputs(pod, { podStatus: running, previous: pending }));
const failed = generateAPIPodStatus(statusInputs(pod, { podStatus: exited, previous: runningStatus }));

function setUp() {
  const entries: JournalInput[] = [];
  const changes: StatusChange[] = [];
  const manager = new StatusManager({ record: (entry) => entries.push(entry) });
  const subscription = manager.onChange((change) => changes.push(change));
  return { manager, entries, changes, subscription };
}

test("the latest status is kept, each with a greater version", () => {
  const { manager, changes } = setUp();
  assert.equal(manager.get(podUid("u")), undefined);
  assert.equal(manager.set(pod, pending, cause), true);
  assert.equal(manager.set(pod, runningStatus, cause), true);
  assert.equal(manager.get(podUid("u")), runningStatus);
  assert.equal(manager.getVersioned(podUid("u"))?.version, 2);
  assert.deepEqual(
    changes.map(({ version, previous, status }) => [version, previous?.phase, status.phase]),
    [
      [1, undefined, "Pending"],
      [2, "Pending", "Running"],
    ],
  );
});

test("a pod that returns under its UID gets no earlier version again", () => {
  const { manager } = setUp();
  manager.set(pod, pending, cause);
  manager.set(pod, runningStatus, cause);
  manager.remove(podUid("u"));
  assert.equal(manager.getVersioned(podUid("u")), undefined);
  manager.set(pod, pending, cause);
  manager.set(pod, runningStatus, cause);
  assert.equal(manager.getVersioned(podUid("u"))?.version, 4);
});

test("an equal status is no change", () => {
  const { manager, entries, changes } = setUp();
  manager.set(pod, pending, cause);
  const seen = entries.length;
  assert.equal(manager.set(pod, structuredClone(pending), cause), false);
  assert.equal(entries.length, seen);
  assert.equal(changes.length, 1);
});

test("visible changes are recorded in the journal with their cause", () => {
  const { manager, entries } = setUp();
  manager.set(pod, pending, cause);
  manager.set(pod, runningStatus, cause);
  manager.set(pod, failed, cause);
  assert.deepEqual(
    entries.map(({ what, message }) => [what, message]),
    [
      ["PodPhaseChanged", "the pod is Pending"],
      ["ContainerStateChanged", "container c is waiting: ContainerCreating"],
      ["PodPhaseChanged", "the pod is Running"],
      ["ContainerStateChanged", "container c is running and ready"],
      ["PodPhaseChanged", "the pod is Failed"],
      ["ContainerStateChanged", "container c is terminated: Error (exit code 3)"],
    ],
  );
  assert.ok(entries.every((entry) => entry.cause === cause && entry.pod?.uid === "u"));
});

test("a container's waiting reason is recorded in full, except for a back-off's remaining time", () => {
  const { manager, entries } = setUp();
  const waiting = (reason: string, message: string) => {
    const containerStatuses = (pending.containerStatuses ?? []).map((each) => ({
      ...each,
      state: { waiting: { reason, message } },
    }));
    manager.set(pod, { ...pending, containerStatuses }, cause);
    return entries.at(-1)?.message;
  };
  assert.equal(waiting("ErrImagePull", "no such host"), "container c is waiting: ErrImagePull: no such host");
  assert.equal(waiting("CrashLoopBackOff", "back-off 10s"), "container c is waiting: CrashLoopBackOff");
});

test("a container that has ended for good never runs again in a status", () => {
  const { manager, entries } = setUp();
  manager.set(pod, failed, cause);
  assert.equal(manager.set(pod, runningStatus, cause), false);
  assert.equal(manager.get(podUid("u")), failed);
  assert.equal(entries.at(-1)?.what, "StatusRefused");
});

test("a pod is forgotten when it is removed, and a listener when it is disposed of", () => {
  const { manager, changes, subscription } = setUp();
  manager.set(pod, pending, cause);
  manager.remove(podUid("u"));
  assert.equal(manager.get(podUid("u")), undefined);
  subscription[Symbol.dispose]();
  manager.set(pod, runningStatus, cause);
  assert.equal(changes.length, 1);
});

test("listeners learn of each removed pod, once", () => {
  const { manager } = setUp();
  const removed: string[] = [];
  const subscription = manager.onRemove((uid) => removed.push(uid));
  manager.set(pod, pending, cause);
  manager.remove(podUid("u"));
  manager.remove(podUid("u"));
  subscription[Symbol.dispose]();
  manager.set(pod, pending, cause);
  manager.remove(podUid("u"));
  assert.deepEqual(removed, ["u"]);
});

test("a status generated before the server's was known takes over its transition times", () => {
  const { manager, changes } = setUp();
  manager.set(pod, runningStatus, cause);
  const early = "2026-11-19T00:00:00Z";
  const conditions = (runningStatus.conditions ?? []).map((condition) => ({ ...condition, lastTransitionTime: early }));
  const flipped = conditions.map((condition) => ({
    ...condition,
    ...(condition.type === "Ready" && { status: "Unknown" as const }),
  }));
  manager.seed(podUid("u"), { ...runningStatus, startTime: early, conditions: flipped });
  const after = manager.get(podUid("u"));
  assert.equal(after?.startTime, early);
  const sinceOf = (type: string): string | null | undefined =>
    after?.conditions?.find((condition) => condition.type === type)?.lastTransitionTime;
  assert.equal(sinceOf("Initialized"), early);
  assert.notEqual(sinceOf("Ready"), early);
  assert.equal(changes.length, 1);
});

test("revoking the start time breaks an invariant; a generation that decreases is reported", () => {
  const { manager } = setUp();
  const said = { ...runningStatus, observedGeneration: 4, startTime: "2026-01-01T00:00:00Z" };
  manager.set(pod, said, cause);
  assert.equal(manager.set(pod, { ...said, observedGeneration: 3 }, cause), true);
  assert.equal(manager.get(podUid("u"))?.observedGeneration, 3);
  const later = { ...said, startTime: "2026-01-01T00:00:01Z" };
  assert.throws(() => manager.set(pod, later, cause), /a pod starts once/);
});
