import assert from "node:assert/strict";
import { test } from "node:test";
import { containerView, podView } from "../../test/support/pod-views.ts";
import type { JournalEntry, JournalInput } from "../journal/entry.ts";
import type { ContainerView, InitContainerView, PodView } from "./local-api.ts";
import { verdict } from "./verdict.ts";

const now = 1_000_000;

const app = (change: Partial<ContainerView>): PodView["containers"] => [
  containerView({ startedAt: now - 60_000, ...change }),
];
const waiting = (reason: string, change: Partial<ContainerView> = {}): PodView["containers"] =>
  app({ state: "waiting", ready: false, reason, ...change });
const init = (change: Partial<InitContainerView>): PodView["initContainers"] => [
  {
    ...containerView({ name: "setup", ready: false, startedAt: now - 3000, ...change }),
    sidecar: false,
    done: false,
    ...change,
  },
];

const retry = (inMs: number, container?: string): Partial<JournalInput> => ({
  kind: "decision",
  what: "BackOff",
  message: "waits",
  until: now + inMs,
  ...(container !== undefined && { container }),
});
const notReady = { ready: false, readySince: undefined };
const going = { state: "terminating", killAt: now + 24_000 } as const;
const hook: Partial<JournalInput> = { kind: "action", what: "PreStopHook", message: "run the hook", container: "app" };
const unhealthy = (probe: string, output: string): Partial<JournalInput> => ({
  kind: "observation",
  what: "Unhealthy",
  message: "",
  container: "app",
  data: { probe, output },
});

const unmounted: Partial<JournalInput> = {
  kind: "outcome",
  what: "MountVolume",
  message: "a.sock is not a socket",
  result: "failed",
};

const unregistered: Partial<JournalInput> = {
  ...unmounted,
  message: 'MountVolume.SetUp failed for volume "pv" : driver name d not found in the list of registered CSI drivers',
};
const unbound: Partial<JournalInput> = {
  kind: "observation",
  what: "VolumeUnprocessed",
  message: "Unable to attach or mount volumes: error processing PVC default/data: PVC is not bound",
};

/** A manifest that is removed and added again. */
const returned: readonly Partial<JournalInput>[] = [
  { kind: "input", what: "PodRemoved", message: "", data: { place: "/m/a.yaml" } },
  { kind: "input", what: "PodAdded", message: "", data: { place: "/m/a.yaml" } },
  { kind: "observation", what: "ContainerDied", message: "", container: "app" },
  { kind: "decision", what: "PodFinished", message: "" },
];

const started: Partial<JournalInput> = { kind: "action", what: "StartContainer", message: "", container: "app" };
const killed: Partial<JournalInput> = {
  kind: "decision",
  what: "Killing",
  message: "stopping container app",
  container: "app",
  cause: { code: "LivenessProbeFailed", message: "liveness probe failed 3/3" },
};

/** Expected line, the pod, and its journal. */
const table: readonly (readonly [string, Partial<PodView>, ...Partial<JournalInput>[]])[] = [
  ["Running and Ready for 2 min, no restarts", { readySince: now - 130_000 }],
  [
    "Running and Ready for 5 s, restarted once, 1 min ago",
    { readySince: now - 5000, containers: app({ restartCount: 1 }) },
  ],
  [
    "Running and Ready for 3 h, restarted 4 times, last 1 min ago",
    { readySince: now - 3 * 3_600_000, containers: app({ restartCount: 4 }) },
  ],
  ["Running and Ready, no restarts", { readySince: undefined }],
  [
    "Running and Ready, restarted once, 1 min ago: its manifest was removed and added again",
    { readySince: undefined, containers: app({ restartCount: 1 }) },
    ...returned,
  ],
  [
    "Running and Ready, restarted 2 times, last 1 min ago",
    { readySince: undefined, containers: app({ restartCount: 2 }) },
    ...returned,
    { kind: "observation", what: "ContainerDied", message: "", container: "app" },
  ],
  // Volumes.
  [
    'Pending: waits for a volume: volume "pv": driver name d not found in the list of registered CSI drivers; run the driver on this node',
    {
      ...notReady,
      phase: "Pending",
      containers: waiting("ContainerCreating", { message: "MountVolume.SetUp failed" }),
    },
    unregistered,
  ],
  [
    "Pending: waits for a volume: claim default/data is not bound; see its Events",
    { ...notReady, phase: "Pending", containers: waiting("ContainerCreating") },
    unbound,
  ],
  [
    "Pending: app does not start: CreateContainerConfigError: no such key",
    { ...notReady, phase: "Pending", containers: waiting("CreateContainerConfigError", { message: "no such key" }) },
    unbound,
  ],
  // Restarts.
  [
    "Restarting: app exits with 3, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 3 }) },
    retry(14_000, "app"),
  ],
  [
    "Restarting: app was OOM-killed, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 137 }) },
    started,
    { kind: "observation", what: "ContainerDied", message: "", container: "app", data: { reason: "OOMKilled" } },
    retry(14_000, "app"),
  ],
  [
    "Restarting: app was killed: liveness probe failed 3/3, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 137 }) },
    started,
    killed,
    { kind: "observation", what: "ContainerDied", message: "", container: "app", data: { reason: "Error" } },
    retry(14_000, "app"),
  ],
  // An earlier instance was killed, this one exited by itself.
  [
    "Restarting: app exits with 3, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 3 }) },
    killed,
    started,
    { kind: "observation", what: "ContainerDied", message: "", container: "app", data: { reason: "Error" } },
    retry(14_000, "app"),
  ],
  // A container that never ran has not exited.
  [
    "Restarting: app does not start: exec: nope: not found, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 128 }) },
    started,
    { kind: "outcome", what: "StartContainer", message: "exec: nope: not found", result: "failed", of: 1 },
    retry(14_000, "app"),
  ],
  [
    "Restarting: app exits with 3, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 3 }) },
    started,
    { kind: "outcome", what: "StartContainer", message: "failed", result: "failed", of: 1 },
    started,
    { kind: "outcome", what: "StartContainer", message: "done", result: "done", of: 3 },
    retry(14_000, "app"),
  ],
  // Housekeeping meanwhile is not a retry.
  [
    "Restarting: app exits with 3, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 3 }) },
    retry(14_000, "app"),
    {
      kind: "action",
      what: "RemoveContainer",
      message: "",
      container: "app",
      cause: { code: "ContainerGC", message: "older dead instances of a container are removed" },
    },
  ],
  [
    "Restarting: app exits with 0, and should keep running, next try is due",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 0 }) },
    retry(-1, "app"),
  ],
  [
    "Restarting: app exited with 137 (OOMKilled), next try in 9 s",
    { ...notReady, containers: app({ state: "terminated", ready: false, exitCode: 137, reason: "OOMKilled" }) },
    retry(9000, "app"),
  ],
  [
    "Restarting: setup exits with 1, next try in 20 s",
    {
      ...notReady,
      phase: "Pending",
      containers: waiting("PodInitializing"),
      initContainers: init({ state: "waiting", reason: "CrashLoopBackOff", exitCode: 1 }),
    },
    retry(20_000, "setup"),
  ],
  [
    "Restarting: app does not start: a.sock is not a socket, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 3, finishedAt: now - 13_000 }) },
    unmounted,
    retry(14_000, "app"),
  ],
  [
    "Restarting: app exits with 3, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 3, finishedAt: now - 13_000 }) },
    unmounted,
    { kind: "action", what: "CreateContainer", message: "", container: "app" },
    retry(14_000, "app"),
  ],
  [
    "Restarting: app exits with 3, next try in 14 s",
    { ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 3, finishedAt: now - 5000 }) },
    unmounted,
    retry(14_000, "app"),
  ],
  [
    "Running, not Ready: app does not start: ContainerCreating: a.sock is not a socket, next try in 14 s",
    { ...notReady, containers: waiting("ContainerCreating", { message: "a.sock is not a socket" }) },
    retry(14_000, "app"),
  ],
  // Pending.
  [
    "Pending: cannot pull podwright.local/demo:1 for app: not found, next try in 20 s",
    { ...notReady, phase: "Pending", containers: waiting("ImagePullBackOff", { message: "not found" }) },
    retry(20_000, "app"),
  ],
  [
    "Pending: cannot pull podwright.local/demo:1 for app: ErrImageNeverPull",
    { ...notReady, phase: "Pending", containers: waiting("ErrImageNeverPull") },
  ],
  [
    'Pending: app does not start: CreateContainerConfigError: configmap "x" not found, next try in 10 s',
    {
      ...notReady,
      phase: "Pending",
      containers: waiting("CreateContainerConfigError", { message: 'configmap "x" not found' }),
    },
    retry(10_000),
  ],
  [
    'Pending: waits for volume data: secret "s" not found',
    { ...notReady, phase: "Pending", containers: waiting("ContainerCreating") },
    { kind: "decision", what: "StartRetry", message: 'waits for volume data: secret "s" not found', until: now + 1000 },
  ],
  [
    "Pending: pull image demo:1, for 12 s",
    { ...notReady, phase: "Pending", containers: waiting("ContainerCreating") },
    { kind: "action", what: "PullImage", message: "pull image demo:1", container: "app" },
  ],
  [
    "Pending: waiting for the removal of pod uid-1 of the same name",
    { ...notReady, phase: "Pending", containers: waiting("") },
    { kind: "decision", what: "PodWaits", message: "waiting for the removal of pod uid-1 of the same name" },
  ],
  [
    "Pending: init container setup runs for 3 s",
    { ...notReady, phase: "Pending", containers: waiting("PodInitializing"), initContainers: init({}) },
  ],
  [
    "Pending: sidecar setup runs for 3 s and has not passed its startup probe",
    { ...notReady, phase: "Pending", containers: waiting("PodInitializing"), initContainers: init({ sidecar: true }) },
  ],
  ["Pending: not started yet", { ...notReady, phase: "Pending", containers: waiting("") }],
  // Not ready.
  [
    "Running, not Ready: app fails its readiness probe: HTTP probe failed with statuscode: 503",
    { ...notReady, containers: app({ ready: false }) },
    unhealthy("readiness", "HTTP probe failed with statuscode: 503"),
  ],
  [
    "Running, not Ready: app fails its startup probe: connection refused",
    { ...notReady, containers: app({ ready: false }) },
    unhealthy("startup", "connection refused"),
  ],
  ["Running, not Ready: app has not passed its probes yet", { ...notReady, containers: app({ ready: false }) }],
  [
    "Running, not Ready: app has not passed its probes yet",
    { ...notReady, containers: app({ ready: false, startedAt: now - 1000 }) },
    unhealthy("readiness", "of the instance before"),
  ],
  [
    "Running, not Ready: app has not passed its probes yet (side neither)",
    { ...notReady, containers: [...app({ ready: false }), containerView({ name: "side", ready: false })] },
  ],
  ["Running, not Ready: its readiness gates are not met", notReady],
  [
    "Running, not Ready: app exited with 0 (Completed)",
    {
      ...notReady,
      containers: [
        ...app({ state: "terminated", ready: false, exitCode: 0, reason: "Completed" }),
        containerView({ name: "side" }),
      ],
    },
  ],
  [
    "Running, not Ready: cannot pull podwright.local/demo:1 for app: not found",
    {
      ...notReady,
      containers: [...waiting("ErrImagePull", { message: "not found" }), containerView({ name: "side" })],
    },
  ],
  // Ends.
  ["Terminating: app runs its preStop hook, SIGKILL in 24 s", { ...going, ready: false }, hook],
  [
    "Terminating: app has not ended yet, SIGKILL in 24 s",
    { ...going, ready: false },
    hook,
    { kind: "outcome", what: "PreStopHook", message: "done", of: 1, result: "done" },
  ],
  ["Terminating: app has not ended yet, SIGKILL is due", { ...going, killAt: now - 1, ready: false }],
  [
    "Terminating: app, side have not ended yet, SIGKILL in 24 s",
    { ...going, ready: false, containers: [...app({}), containerView({ name: "side" })] },
  ],
  [
    "Terminating: its containers have ended: its resources are being removed",
    { ...going, ready: false, containers: app({ state: "terminated", exitCode: 0 }) },
  ],
  [
    "Terminating: it has stopped: finalizers keep it at the API server: b",
    { state: "terminated", phase: "Failed", ready: false, finalizers: ["b"] },
    { kind: "action", what: "DeletePod", message: "" },
    { kind: "outcome", what: "DeletePod", message: "done", of: 1, result: "done" },
  ],
  [
    "Completed 30 s ago",
    {
      phase: "Succeeded",
      state: "terminated",
      ready: false,
      containers: app({ state: "terminated", exitCode: 0, finishedAt: now - 30_000 }),
    },
  ],
  [
    "Failed: app exited with 3 (Error) 2 min ago",
    {
      phase: "Failed",
      state: "terminated",
      ready: false,
      containers: app({ state: "terminated", exitCode: 3, reason: "Error", finishedAt: now - 150_000 }),
    },
  ],
  [
    "Evicted: The node was low on resource: memory.",
    { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory.", ready: false },
  ],
  [
    "Failed: OutOfcpu: Node didn't have enough resource: cpu",
    {
      phase: "Failed",
      reason: "OutOfcpu",
      message: "Node didn't have enough resource: cpu",
      ready: false,
      containers: waiting(""),
    },
  ],
  [
    "Failed: DeadlineExceeded: too long",
    { phase: "Failed", reason: "DeadlineExceeded", message: "too long", ready: false },
  ],
  [
    "Unknown: NodeLost: the node is gone",
    { phase: "Unknown", reason: "NodeLost", message: "the node is gone", ready: false },
  ],
];

test("each situation of a pod has its verdict", () => {
  for (const [expected, change, ...inputs] of table) {
    const entries = inputs.map((input, index): JournalEntry => {
      return {
        kind: "observation",
        what: "PodPhaseChanged",
        message: "",
        ...input,
        seq: index + 1,
        time: now - 12_000,
      };
    });
    assert.equal(verdict({ pod: podView(change), entries, startSeq: 0, now }), expected);
  }
});

test("a verdict is one printable line, whatever a pod leaves as its message", () => {
  const message = `\u001b[31m${"x".repeat(4000)}\nthe end`;
  const pod = podView({ ...notReady, phase: "Pending", containers: waiting("ErrImagePull", { message }) });
  const line = verdict({ pod, entries: [], startSeq: 0, now });
  assert.doesNotMatch(line, /[\u0000-\u001f]/u);
  assert.ok(line.length < 300 && line.endsWith("the end"), line);
});

test("an action of a container ends its wait", () => {
  const pod = podView({ ...notReady, containers: waiting("CrashLoopBackOff", { exitCode: 3 }) });
  const start: Partial<JournalInput> = { kind: "action", what: "StartContainer", container: "app" };
  const told = { kind: "action", what: "PodPhaseChanged", message: "", time: now } as const;
  const entries = [retry(14_000, "app"), start].map((input, seq): JournalEntry => ({ ...told, ...input, seq }));
  assert.equal(verdict({ pod, entries, startSeq: 0, now }), "Restarting: app exits with 3");
});
