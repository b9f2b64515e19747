import assert from "node:assert/strict";
import { test } from "node:test";
import { containerView, podView } from "../../test/support/pod-views.ts";
import { podUid } from "../base/ids.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { RunProgress } from "./run-progress.ts";
import { Painter } from "./terminal.ts";

const pod = { namespace: "default", name: "web", uid: podUid("uid-web") };
const other = { namespace: "default", name: "db", uid: podUid("uid-db") };
const paint = new Painter(false);
const start = (change: Partial<JournalEntry> = {}): JournalEntry => ({
  seq: 1,
  time: 1000,
  kind: "action",
  what: "StartContainer",
  message: "start container app",
  pod,
  container: "app",
  cause: { code: "PodAdded", message: "the pod was added" },
  ...change,
});
const outcome = (change: Partial<JournalEntry> = {}): JournalEntry => ({
  ...start({ seq: 2, kind: "outcome", message: "done", of: 1, result: "done", durationMs: 120, time: 1120 }),
  ...change,
});

test("an action stays live until its outcome, which is printed with its duration", () => {
  const progress = new RunProgress([pod], 0, paint, "/var/lib/podwright");
  assert.deepEqual(progress.entry(start()), []);
  assert.deepEqual(progress.live(1050), ["… start container app   50 ms"]);
  assert.deepEqual(progress.entry(outcome()), ["✓ start container app   120 ms"]);
  assert.deepEqual(progress.live(1200), []);
});

test("failures and unknown outcomes are printed with their messages", () => {
  const progress = new RunProgress([pod], 0, paint, "/var/lib/podwright");
  progress.entry(start());
  assert.deepEqual(progress.entry(outcome({ result: "failed", message: "no such\u001b file" })), [
    String.raw`✗ start container app: no such\u001b file   120 ms`,
  ]);
  assert.deepEqual(progress.entry(outcome({ of: 99, result: "unknown", message: "timed out" })), [
    "? StartContainer: timed out   120 ms",
  ]);
});

test("a wait for a claim is shown with its reason, and other observations are not", () => {
  const progress = new RunProgress([pod], 0, paint, "/var/lib/podwright");
  const message = 'persistentvolumeclaims "data" not found';
  const observed = start({ kind: "observation", what: "VolumeUnprocessed", message });
  assert.deepEqual(progress.entry(observed), [`! ${message}`]);
  assert.deepEqual(progress.entry({ ...observed, what: "PodPhaseChanged" }), []);
});

test("entries of other pods are not shown, and with several pods each line has a name", () => {
  assert.deepEqual(new RunProgress([other], 0, paint, "/var/lib/podwright").entry(outcome()), []);
  const progress = new RunProgress([pod, other], 0, paint, "/var/lib/podwright");
  progress.entry(start());
  assert.deepEqual(progress.entry(outcome()), ["✓ web: start container app   120 ms"]);
});

test("clean-up actions are only shown when they fail", () => {
  const progress = new RunProgress([pod], 0, paint, "/var/lib/podwright");
  assert.deepEqual(progress.entry(outcome({ what: "RemoveContainer" })), []);
  assert.equal(progress.entry(outcome({ what: "RemoveContainer", result: "failed" })).length, 1);
});

test("the cause is shown once the pod has been ready", () => {
  const progress = new RunProgress([pod], 0, paint, "/var/lib/podwright");
  progress.views([podView({})], 500);
  progress.entry(start({ cause: { code: "ContainerExited", message: "container app exited with code 3" } }));
  assert.deepEqual(progress.entry(outcome()), [
    "✓ start container app   120 ms   because container app exited with code 3",
  ]);
});

test("a wait is printed once, counts down in the live region, and ends when the action begins", () => {
  const progress = new RunProgress([pod], 0, paint, "/var/lib/podwright");
  const wait = start({ kind: "decision", what: "BackOff", message: "back-off of container app", until: 11_000 });
  assert.deepEqual(progress.entry(wait), ["! back-off of container app   waits 10.0 s"]);
  assert.deepEqual(progress.entry({ ...wait, seq: 5 }), []);
  assert.deepEqual(progress.live(8000), ["… back-off of container app   in 3.0 s"]);
  progress.entry(start({ seq: 6 }));
  assert.equal(progress.live(8000).length, 1);
});

test("decisions without a wait, or with a countdown elsewhere, are not shown", () => {
  const stopping = start({ kind: "decision", what: "PodTerminating", until: 11_000 });
  assert.deepEqual(new RunProgress([pod], 0, paint, "/var/lib/podwright").entry(stopping), []);
  assert.deepEqual(new RunProgress([pod], 0, paint, "/var/lib/podwright").entry(start({ kind: "decision" })), []);
});

test("the addresses of a pod are printed once, when it becomes ready", () => {
  const progress = new RunProgress([pod], 1000, paint, "/srv/pods");
  assert.deepEqual(progress.views([], 1500), []);
  assert.deepEqual(progress.views([podView({ ready: false, phase: "Pending" })], 1500), []);
  const lines = progress.views([podView({})], 2500);
  assert.equal(lines[0], "● web is ready   after 1.5 s");
  assert.match(lines.join("\n"), /http:\/\/127\.0\.0\.1:8080/);
  assert.match(lines.join("\n"), /podwright logs --state-dir \/srv\/pods -f web/);
  assert.deepEqual(progress.views([podView({})], 3000), []);
});

test("a pod that is no longer ready is printed with the container, and an ended one with its result", () => {
  const progress = new RunProgress([pod], 0, paint, "/var/lib/podwright");
  progress.views([podView({})], 0);
  const waiting = containerView({ state: "waiting", ready: false, reason: "CrashLoopBackOff", restartCount: 1 });
  assert.deepEqual(progress.views([podView({ ready: false, containers: [waiting] })], 0), [
    "↻ web: container app was restarted for the 1st time",
    "● web is not ready",
    "  container app is waiting: CrashLoopBackOff",
  ]);
  const ended = containerView({ state: "terminated", ready: false, reason: "Error", exitCode: 3, restartCount: 1 });
  assert.deepEqual(progress.views([podView({ phase: "Failed", ready: false, containers: [ended] })], 0), [
    "● web failed",
    "  container app ended with exit code 3 (Error)",
  ]);
  assert.deepEqual(progress.views([], 0), ["○ web is gone"]);
  const done = containerView({ state: "terminated", ready: false, reason: "Completed", exitCode: 0 });
  const evicted = { reason: "Evicted", message: "the node is full" };
  for (const [told, lines] of [
    [{}, []],
    [evicted, ["  Evicted: the node is full"]],
  ] as const) {
    const view = podView({ phase: "Succeeded", ready: false, containers: [done], ...told });
    const shown = new RunProgress([pod], 0, paint, "/var/lib/podwright").views([view], 0);
    assert.deepEqual(shown, ["● web succeeded", ...lines]);
  }
});

test("a stopping pod is not reported as unready, and restarts before this run are not reported", () => {
  const progress = new RunProgress([pod], 0, paint, "/var/lib/podwright");
  progress.views([podView({ containers: [containerView({ restartCount: 22 })] })], 0);
  assert.deepEqual(
    progress.views(
      [podView({ state: "terminating", ready: false, containers: [containerView({ restartCount: 22 })] })],
      0,
    ),
    [],
  );
  assert.deepEqual(progress.views([podView({ containers: [containerView({ restartCount: 23 })] })], 0), [
    "↻ web: container app was restarted for the 23rd time",
  ]);
});

test("actions of a stopped engine leave the live region without an outcome", () => {
  const progress = new RunProgress([pod], 0, paint, "/var/lib/podwright");
  progress.entry(start());
  progress.engineRestarted();
  assert.deepEqual(progress.live(2000), []);
});
