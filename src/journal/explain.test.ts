import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { podUid } from "../base/ids.ts";
import type { Cause, JournalEntry } from "./entry.ts";
import type { CauseCode } from "./vocabulary.ts";
import { timeline, why } from "./explain.ts";
import { renderTimeline, renderWhy } from "./render.ts";
import { plainPaint } from "./text.ts";

const start = Date.UTC(2026, 10, 20, 14, 1, 50);
const web = { namespace: "default", name: "web", uid: podUid("uid-2") };
const webAs = (uid: string) => ({ ...web, uid: podUid(uid) });
const db = { namespace: "default", name: "db", uid: podUid("uid-db") };
const options = { now: start + 13_000, timeZone: "UTC", width: 100 };

/** Entries numbered from 1 at `start` plus the given milliseconds. */
function journal(...inputs: ReadonlyArray<readonly [number, Partial<JournalEntry>]>): JournalEntry[] {
  const entries: JournalEntry[] = [];
  for (const [atMs, input] of inputs) {
    const seq = entries.length + 1;
    entries.push({ kind: "observation", what: "PodPhaseChanged", message: "", ...input, seq, time: start + atMs });
  }
  return entries;
}

const because = (code: CauseCode, message: string, entry?: number, more?: Cause): Cause => ({
  code,
  message,
  ...(entry !== undefined && { entry }),
  ...(more !== undefined && { because: more }),
});

/** A pod whose container is killed by its liveness probe and waits for its restart, across a restart of podwright. */
function story(): JournalEntry[] {
  const app = { pod: web, container: "app" };
  const died = { kind: "observation", what: "ContainerDied" } as const;
  return journal(
    [-90_000, { kind: "input", what: "PodAdded", message: "first version", pod: webAs("uid-1") }],
    [-9_000, { kind: "decision", what: "PodTerminated", message: "the pod is gone", pod: webAs("uid-1") }],
    [0, { kind: "input", what: "PodAdded", message: "/etc/podwright/manifests/web.yaml holds a new pod", pod: web }],
    [
      2,
      {
        kind: "action",
        what: "RunPodSandbox",
        message: "create the sandbox",
        pod: web,
        cause: because(
          "SandboxMissing",
          "the pod has no sandbox",
          undefined,
          because("PodAdded", "the manifest was added", 3),
        ),
      },
    ],
    [50, { kind: "input", what: "PodAdded", message: "another pod", pod: db }],
    [
      227,
      {
        kind: "outcome",
        what: "RunPodSandbox",
        message: "create the sandbox: done",
        pod: web,
        of: 4,
        result: "done",
        durationMs: 225,
      },
    ],
    [
      230,
      {
        kind: "action",
        what: "PullImage",
        message: 'Pulling image "registry.example/app:2"',
        ...app,
        cause: because("ContainerMissing", "container app has not been started yet"),
      },
    ],
    [
      2_430,
      {
        kind: "outcome",
        what: "PullImage",
        message:
          'Successfully pulled image "registry.example/app:2" in 2.2s (2.2s including waiting). Image size: 1048576 bytes.',
        ...app,
        of: 7,
        result: "done",
        durationMs: 2_200,
      },
    ],
    [
      2_440,
      {
        kind: "action",
        what: "StartContainer",
        message: "start container app (4f2a)",
        ...app,
        cause: because("ContainerMissing", "container app has not been started yet"),
      },
    ],
    [
      2_510,
      {
        kind: "outcome",
        what: "StartContainer",
        message: "start container app (4f2a): done",
        ...app,
        of: 9,
        result: "done",
        durationMs: 70,
      },
    ],
    [2_520, { what: "ContainerStarted", message: "container app is running", ...app }],
    [4_000, { kind: "note", what: "PodwrightStarted", message: "podwright started; the last entry before is 11" }],
    [9_000, { what: "Unhealthy", message: "liveness GET :8080/healthz: no answer in 1 s", ...app }],
    [
      9_010,
      {
        kind: "action",
        what: "StopContainer",
        message: "stop container app (4f2a), grace 2 s",
        ...app,
        cause: because("LivenessProbeFailed", "liveness probe failed 3 times in a row", 13),
      },
    ],
    [
      11_050,
      {
        kind: "outcome",
        what: "StopContainer",
        message: "stop container app (4f2a), grace 2 s: done",
        ...app,
        of: 14,
        result: "done",
        durationMs: 2_040,
      },
    ],
    [11_060, { ...died, message: "container app exited with code 137 (Error)", ...app }],
    [
      11_070,
      {
        kind: "decision",
        what: "BackOff",
        message: "back-off 10s restarting failed container=app",
        ...app,
        until: start + 21_070,
        cause: because("ContainerExited", "container app exited with code 137 (Error)", 16),
      },
    ],
    [12_000, { kind: "note", what: "RelistFailed", message: "the runtime can't be listed: no answer in 120 s" }],
  );
}

test("why reports the last step, its causes with their evidence, what is next, and earlier pods", () => {
  const explanation = why(story(), { namespace: "default", name: "web" });
  assert.ok(explanation);
  assert.deepEqual(explanation.incarnation.pod, web);
  const [pod, app] = explanation.subjects;
  assert.equal(pod?.container, undefined);
  assert.deepEqual(
    pod?.causes.map((cause) => [cause.code, cause.evidence?.seq]),
    [
      ["SandboxMissing", undefined],
      ["PodAdded", 3],
    ],
  );
  assert.equal(app?.last.what, "ContainerDied");
  assert.equal(app?.after?.what, "StopContainer");
  assert.equal(app?.next?.until, start + 21_070);
  assert.deepEqual(
    explanation.older.map((incarnation) => incarnation.pod.uid),
    ["uid-1"],
  );
  assert.deepEqual(
    explanation.notes.map((note) => note.what),
    ["RelistFailed"],
  );
  const json = JSON.stringify(explanation);
  assert.deepEqual(JSON.parse(json), explanation, "it is JSON-able");
});

test("why reports a back-off although housekeeping came later", () => {
  const app = { pod: web, container: "app" };
  const first = because("ContainerMissing", "container app has not been started yet");
  const gc = because("ContainerGC", "one dead instance of each container is kept");
  const entries = journal(
    [0, { kind: "action", what: "StartContainer", message: "start container app", ...app, cause: first }],
    [10, { what: "ContainerDied", message: "container app exited with code 3 (Error)", ...app }],
    [11, { kind: "decision", what: "BackOff", message: "container app waits 10 s", until: start + 10_010, ...app }],
    [12, { kind: "action", what: "RemoveContainer", message: "remove container app", ...app, cause: gc }],
    [13, { kind: "outcome", what: "RemoveContainer", message: "done", of: 4, result: "done", ...app }],
    [14, { what: "ContainerStateChanged", message: "container app is waiting: CrashLoopBackOff", ...app }],
    [15, { what: "ContainerRemoved", message: "container app is gone from the runtime", ...app }],
  );
  const [subject] = why(entries, web)?.subjects.filter(({ container }) => container === "app") ?? [];
  assert.deepEqual([subject?.last.what, subject?.after?.what], ["ContainerStateChanged", "StartContainer"]);
  assert.equal(subject?.next?.until, start + 10_010);
});

test("why as text", () => {
  const explanation = why(story(), { uid: podUid("uid-2") });
  assert.ok(explanation);
  assert.equal(
    renderWhy(explanation, options),
    `default/web  uid uid-2, first seen 2026-11-20 14:01:50.000

  note     the runtime can't be listed: no answer in 120 s                              14:02:02.000

the pod
  last     create the sandbox → done in 225 ms                                          14:01:50.002
  because  the pod has no sandbox
  because  the manifest was added (/etc/podwright/manifests/web.yaml holds a new pod)   14:01:50.000

container app
  last     container app exited with code 137 (Error)                                   14:02:01.060
  after    stop container app (4f2a), grace 2 s → done in 2.0 s                         14:01:59.010
  because  liveness probe failed 3 times in a row (liveness GET :8080/healthz: no       14:01:59.000
           answer in 1 s)
  next     back-off 10s restarting failed container=app (in 8.1 s)                      14:02:11.070
`,
  );
});

test("timeline as text", () => {
  const found = timeline(story(), { namespace: "default", name: "web" });
  assert.ok(found);
  assert.equal(
    renderTimeline(found, options),
    `default/web  uid uid-2, first seen 2026-11-20 14:01:50.000

14:01:50.000       +0 ms       PodAdded          /etc/podwright/manifests/web.yaml holds a new pod
14:01:50.002       +2 ms       RunPodSandbox     create the sandbox → done in 225 ms
                                                   because the pod has no sandbox
                                                   because the manifest was added
                                                   (/etc/podwright/manifests/web.yaml holds a new
                                                   pod)
14:01:50.230     +230 ms  app  PullImage         Pulling image "registry.example/app:2" → done in
                                                 2.2 s: Successfully pulled image
                                                 "registry.example/app:2" in 2.2s (2.2s including
                                                 waiting). Image size: 1048576 bytes.
                                                   because container app has not been started yet
14:01:52.440      +2.4 s  app  StartContainer    start container app (4f2a) → done in 70 ms
                                                   because container app has not been started yet
14:01:52.520      +2.5 s  app  ContainerStarted  container app is running
14:01:54.000      +4.0 s       PodwrightStarted  podwright started; the last entry before is 11
14:01:59.000      +9.0 s  app  Unhealthy         liveness GET :8080/healthz: no answer in 1 s
14:01:59.010      +9.0 s  app  StopContainer     stop container app (4f2a), grace 2 s → done in 2.0
                                                 s
                                                   because liveness probe failed 3 times in a row
                                                   (liveness GET :8080/healthz: no answer in 1 s)
14:02:01.060     +11.1 s  app  ContainerDied     container app exited with code 137 (Error)
14:02:01.070     +11.1 s  app  BackOff           back-off 10s restarting failed container=app
                                                   because container app exited with code 137
                                                   (Error)

earlier pods of this name:
  uid-1  2026-11-20 14:00:20.000, for 1 min 21 s: the pod is gone
`,
  );
});

test("mirror pods and rejected manifests of the same name do not hide a pod", () => {
  const entries = [
    ...story(),
    ...journal(
      [20_000, { kind: "action", what: "DeleteMirrorPod", message: "deleting the mirror pod", pod: webAs("mirror") }],
      [21_000, { what: "FailedValidation", message: "another pod has its name", pod: webAs("other") }],
    ).map((entry) => ({ ...entry, seq: entry.seq + 1000 })),
  ];
  const told = why(entries, { namespace: "default", name: "web" });
  assert.deepEqual([told?.incarnation.pod.uid, told?.older.map(({ pod }) => pod.uid)], ["uid-2", ["uid-1"]]);
  assert.equal(why(entries, { uid: podUid("other") })?.incarnation.lastMessage, "another pod has its name");
});

test("an action without an outcome is in progress, or was interrupted when podwright has started since", () => {
  const cause = because("Resync", "a");
  const pull = { kind: "action", what: "PullImage", message: "Pulling", pod: web, cause } as const;
  const lost = why(journal([0, pull], [1, { kind: "note", what: "PodwrightStarted", message: "" }], [2, pull]), web);
  assert.equal(lost?.subjects[0]?.last.ending?.result, "running");
  const lines = timeline(journal([0, pull], [1, { kind: "note", what: "PodwrightStarted" }], [2, pull]), web)?.lines;
  assert.deepEqual(
    lines?.map((line) => line.step.ending?.result),
    ["interrupted", undefined, "running"],
  );
});

test("a chain continues with the evidence's own causes, and circular evidence ends", () => {
  const entries = journal(
    [0, { kind: "decision", what: "StartRetry", message: "a", pod: web, cause: because("RetryDue", "b", 2) }],
    [1, { kind: "decision", what: "PodWaits", message: "b", pod: web, cause: because("Resync", "c", 1) }],
  );
  const codes = why(entries, web)?.subjects[0]?.causes.map((cause) => cause.code);
  assert.deepEqual(codes, ["Resync", "RetryDue"]);
});

test("evidence that is an outcome leads to its action's causes", () => {
  const entries = journal(
    [0, { kind: "action", what: "PullImage", message: "pull", pod: web, cause: because("ContainerMissing", "first") }],
    [1, { kind: "outcome", what: "PullImage", message: "no such host", pod: web, of: 1, result: "failed" }],
    [2, { kind: "decision", what: "BackOff", message: "wait", pod: web, cause: because("RetryDue", "failed", 2) }],
  );
  assert.deepEqual(
    why(entries, web)?.subjects[0]?.causes.map((cause) => cause.code),
    ["RetryDue", "ContainerMissing"],
  );
});

test("a pod without entries has no explanation and no timeline", () => {
  assert.equal(why(story(), { name: "nobody" }), undefined);
  assert.equal(timeline([], web), undefined);
});

test("text from a pod cannot control the terminal, and lines keep to the width", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.integer({ min: 60, max: 140 }), (text, width) => {
      const hostile = journal([0, { what: "Unhealthy", message: `\u001b[2J\u202e${text}`, pod: web, container: text }]);
      const found = why(hostile, web);
      const lived = timeline(hostile, web);
      assert.ok(found && lived);
      const rendered = renderWhy(found, { ...options, width }) + renderTimeline(lived, { ...options, width });
      assert.ok(!/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/.test(rendered));
    }),
  );
  const found = timeline(story(), web);
  assert.ok(found);
  const widest = Math.max(
    ...renderTimeline(found, { ...options, width: 80 })
      .split("\n")
      .map((line) => line.length),
  );
  assert.ok(widest <= 80, String(widest));
});

test("colours mark outcomes", () => {
  const found = timeline(
    journal(
      [0, { kind: "action", what: "StartContainer", message: "start", pod: web, cause: because("Resync", "a") }],
      [
        9,
        {
          kind: "outcome",
          what: "StartContainer",
          message: "no such file",
          pod: web,
          of: 1,
          result: "failed",
          durationMs: 9,
        },
      ],
    ),
    web,
  );
  assert.ok(found);
  const text = renderTimeline(found, { ...options, paint: { ...plainPaint, bad: (bad) => `<${bad}>` } });
  assert.match(text, /<start → failed after 9 ms: no such file>/);
});

test("for a container that runs again, why reports the cause of its restart", () => {
  const app = { pod: web, container: "app" };
  const entries = journal(
    [0, { kind: "input", what: "PodAdded", message: "a manifest was added", pod: web }],
    [
      10,
      {
        kind: "action",
        what: "StartContainer",
        message: "start container app (5b3b)",
        ...app,
        cause: because(
          "ContainerExited",
          "container app exited with code 137",
          undefined,
          because("LivenessProbeFailed", "liveness probe failed 3/3 (GET :8080/healthz: no answer in 1 s)"),
        ),
      },
    ],
    [20, { kind: "outcome", what: "StartContainer", message: "started", ...app, of: 2, result: "done" }],
    [30, { what: "ContainerStarted", message: "container app is running", ...app }],
    [
      31,
      {
        what: "ContainerStateChanged",
        message: "container app is running and ready",
        ...app,
        cause: because("ContainerStarted", "container app is running", 4),
      },
    ],
  );
  const subject = why(entries, web)?.subjects.find(({ container }) => container === "app");
  assert.equal(subject?.last.message, "container app is running and ready");
  assert.equal(subject.after?.what, "StartContainer");
  assert.deepEqual(
    subject.causes.map(({ code }) => code),
    ["ContainerExited", "LivenessProbeFailed"],
  );
});
