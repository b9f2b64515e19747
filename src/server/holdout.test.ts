import assert from "node:assert/strict";
import { test } from "node:test";
import { podView } from "../../test/support/pod-views.ts";
import type { JournalEntry, JournalInput } from "../journal/entry.ts";
import { nodeHoldout, serverHoldout, volumeHoldout } from "./holdout.ts";
import { verdict } from "./verdict.ts";

const now = 1_000_000;
const unmounting: Partial<JournalInput> = { kind: "action", what: "UnmountVolumes", message: "remove volumes pv-1" };
const deletion: Partial<JournalInput> = { kind: "action", what: "DeletePod", message: "delete the pod" };
const patch: Partial<JournalInput> = { kind: "action", what: "PatchPodStatus", message: "update the status" };
const silent: Partial<JournalInput> = { what: "VolumeSilent", message: "volume pv-1 (d) does not answer" };

/** Entries of 12 s ago. */
function entries(...inputs: readonly Partial<JournalInput>[]): JournalEntry[] {
  return inputs.map((input, index) => {
    return { kind: "observation", what: "PodPhaseChanged", message: "", ...input, seq: index + 1, time: now - 12_000 };
  });
}

function outcome(of: number, result: "done" | "failed", message = ""): Partial<JournalInput> {
  return { kind: "outcome", what: "UnmountVolumes", of, result, message };
}

test("a pod whose containers have ended waits for a volume, or for a step", () => {
  const told = (...inputs: readonly Partial<JournalInput>[]): string | undefined =>
    nodeHoldout({ entries: entries(...inputs), startSeq: 0, now });
  assert.equal(told(), undefined);
  assert.equal(told(unmounting), "remove volumes pv-1, for 12 s");
  assert.equal(
    told(unmounting, outcome(1, "failed", "target is busy.")),
    "remove volumes pv-1 failed: target is busy.",
  );
  assert.equal(told(unmounting, outcome(1, "done")), undefined);
  assert.equal(told(unmounting, silent), "volume pv-1 (d) does not answer, reported 12 s ago");
  assert.equal(told(unmounting, silent, { ...silent, what: "VolumeSilenceOver" }), "remove volumes pv-1, for 12 s");
  const others = [silent, { ...silent, message: "volume b does not answer" }];
  assert.equal(told(...others), "volume pv-1 (d) does not answer, reported 12 s ago, and 1 more");
  assert.equal(told(deletion), undefined, "that is the API server's");
  const held = { what: "VolumeHeld", message: "volume disk (d) cannot be unpublished: busy" } as const;
  assert.equal(told(unmounting, silent, held), `${held.message}, reported 12 s ago`, "a reason is more than silence");
  const volumes = (...inputs: readonly Partial<JournalInput>[]): unknown =>
    volumeHoldout({ entries: entries(...inputs), startSeq: 0 }, () => assert.fail("no driver is away"));
  assert.deepEqual(volumes(unmounting, silent, held), { holdout: held.message, awayDrivers: [] });
  assert.equal(told(unmounting, held, { ...held, what: "VolumeHeldOver" }), "remove volumes pv-1, for 12 s");
  assert.equal(volumes(unmounting), undefined);
});

test("a pod that has stopped waits for a write, or for its finalizers", () => {
  const told = (finalizers: readonly string[], ...inputs: readonly Partial<JournalInput>[]): string =>
    serverHoldout({ entries: entries(...inputs), startSeq: 0, now }, finalizers);
  assert.equal(told([]), "its deletion will be sent to the API server next");
  assert.equal(told([], patch), "update the status, for 12 s");
  assert.equal(told([], patch, outcome(1, "failed", "forbidden")), "update the status failed: forbidden");
  assert.equal(told(["a"], deletion), "delete the pod, for 12 s");
  assert.equal(told(["a"], deletion, outcome(1, "failed", "forbidden")), "delete the pod failed: forbidden");
  const finalizers = ["a.example.org/x", "b"];
  assert.equal(
    told(finalizers, deletion, outcome(1, "done")),
    "finalizers keep it at the API server: a.example.org/x, b",
  );
  assert.equal(told([], deletion, outcome(1, "done")), "the API server has not removed it yet");
});

test("a pod of no API server that has stopped, and whose volume is held, is not over", () => {
  const holdout = "volume disk (d) cannot be unpublished: driver name d not found";
  const pod = podView({ state: "terminated", phase: "Failed", ready: false, holdout });
  const held = entries({ what: "VolumeHeld", message: holdout });
  assert.equal(
    verdict({ pod, entries: held, startSeq: 0, now }),
    `Terminating: it has stopped: ${holdout}, reported 12 s ago`,
  );
});

test("what was open when podwright started is over: a step was interrupted, and a wait is reported again", () => {
  const told = (...inputs: readonly Partial<JournalInput>[]): string | undefined =>
    nodeHoldout({ entries: entries(...inputs), startSeq: inputs.length + 1, now });
  assert.equal(told(unmounting), undefined);
  assert.equal(told(silent), undefined);
  assert.equal(told(unmounting, outcome(1, "failed", "busy")), "remove volumes pv-1 failed: busy");
  const volumes = (startSeq: number): unknown =>
    volumeHoldout({ entries: entries(silent), startSeq }, () => [])?.holdout;
  assert.equal(volumes(2), undefined);
  assert.equal(volumes(0), silent.message);
  const server = serverHoldout({ entries: entries(deletion), startSeq: 2, now }, ["a"]);
  assert.equal(server, "its deletion will be sent to the API server next");
  const pod = podView({ state: "terminating", ready: false, killAt: now + 24_000 });
  const hook: Partial<JournalInput> = { kind: "action", what: "PreStopHook", message: "", container: "app" };
  const inputs = { pod, entries: entries(hook), now };
  assert.match(verdict({ ...inputs, startSeq: 0 }), /app runs its preStop hook/u);
  assert.match(verdict({ ...inputs, startSeq: 2 }), /app has not ended yet/u);
});
