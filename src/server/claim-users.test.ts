import assert from "node:assert/strict";
import { test } from "node:test";
import { containerView, podView } from "../../test/support/pod-views.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { othersWithClaim } from "./claim-users.ts";
import type { ContainerView, PodView } from "./local-api.ts";
import { verdict } from "./verdict.ts";

const claims = { disk: "data" };
const containers = [containerView({ state: "waiting", ready: false, reason: "ContainerCreating" })];
const waiting = { phase: "Pending", ready: false, containers, claims } as const;
const pod = podView(waiting);

function others(...listed: readonly PodView[]): string[] {
  return othersWithClaim(pod, "disk", [pod, ...listed]).map(({ name }) => name);
}

test("the other pods with a claim are those that may have it mounted, or else all", () => {
  const runs = podView({ name: "runs", claims: { other: "data" } });
  const waits = podView({ ...waiting, name: "waits" });
  const completed = podView({ name: "completed", state: "terminated", phase: "Succeeded", claims });
  const ending = podView({ name: "ending", state: "terminating", containers, claims });
  const held = podView({ name: "held", state: "terminated", holdout: "busy", claims });
  assert.deepEqual(others(runs, waits, completed), ["runs"]);
  assert.deepEqual(others(waits, ending, held), ["ending", "held"]);
  assert.deepEqual(others(waits, completed), ["waits"], "a pod that has ended has released it");
  assert.deepEqual(others(completed), []);
  const strangers = [podView({ name: "a" }), podView({ name: "b", claims: { disk: "b" } })];
  assert.deepEqual(others(...strangers, podView({ name: "c", namespace: "far", claims })), []);
  assert.deepEqual(othersWithClaim(podView({}), "disk", [runs]), []);
});

test("a pod whose containers wait for a restart or an image has its volumes", () => {
  const waits = podView({ ...waiting, name: "waits" });
  const named = (name: string, change: Partial<ContainerView>): PodView => {
    const own = containerView({ state: "waiting", ready: false, ...change });
    return podView({ name, claims, containers: [own] });
  };
  for (const reason of ["CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"]) {
    assert.deepEqual(others(waits, named("fails", { reason })), ["fails"], reason);
  }
  const again = named("again", { reason: "ContainerCreating", restartCount: 1 });
  assert.deepEqual(others(waits, again), ["again"]);
  for (const reason of ["", "ContainerCreating", "PodInitializing"]) {
    assert.deepEqual(others(waits, named("new", { reason })), ["waits", "new"], reason);
  }
});

test("a pod that waits for a ReadWriteOncePod claim is told who has it, beside upstream's words", () => {
  const used = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";
  const entries: JournalEntry[] = [
    { kind: "action", what: "MountVolume", message: "set up", data: { volume: "disk" }, seq: 1, time: 1 },
    {
      ...{ kind: "outcome", what: "MountVolume", of: 1, result: "failed", seq: 2, time: 2 },
      message: `MountVolume.SetUp failed for volume "pv" : ${used}`,
    },
  ];
  const told = (...listed: readonly PodView[]): string => verdict({ pod, entries, listed, startSeq: 0, now: 3 });
  const line = `Pending: waits for a volume: volume "pv": ${used}`;
  const [db, dc] = ["db", "dc"].map((name) => podView({ name, claims })) as [PodView, PodView];
  assert.equal(told(pod, db), `${line}; pod db has it, and has to end first`);
  assert.equal(told(db, dc), `${line}; one of the pods db, dc has it, and has to end first`);
  assert.equal(told(pod), `${line}; the other pod has to end first`);
});
