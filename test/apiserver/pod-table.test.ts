import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { age } from "./ages.ts";
import { type Fields, textAt } from "./objects.ts";
import { podCells } from "./pod-table.ts";

const past = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();
const running = { running: { startedAt: past(60) } };
const waiting = (reason: string): Fields => ({ waiting: { reason } });
const ended = (exitCode: number, reason?: string, signal?: number): Fields => ({
  terminated: { exitCode, ...(reason === undefined ? {} : { reason }), ...(signal === undefined ? {} : { signal }) },
});
const container = (name: string, state: Fields, more: Fields = {}): Fields => ({ name, state, ready: false, ...more });
const up = (name: string, more: Fields = {}): Fields =>
  container(name, running, { ready: true, started: true, ...more });
const condition = (type: string, status = "True", more: Fields = {}): Fields => ({ type, status, ...more });

interface Scene {
  readonly phase?: string;
  readonly reason?: string;
  readonly inits?: readonly Fields[];
  /** Names of sidecars. */
  readonly beside?: readonly string[];
  readonly containers?: readonly Fields[];
  readonly conditions?: readonly Fields[];
  readonly deleted?: boolean;
}

function podOf({ phase = "Running", reason, inits = [], beside = [], containers = [], ...more }: Scene): Fields {
  const initContainers = inits.map((each) => ({
    name: textAt(each, "name"),
    ...(beside.includes(textAt(each, "name")) ? { restartPolicy: "Always" } : {}),
  }));
  return {
    metadata: { name: "web", ...(more.deleted === true ? { deletionTimestamp: past(1) } : {}) },
    spec: { initContainers, containers: containers.map(({ name }) => ({ name })) },
    status: {
      phase,
      ...(reason === undefined ? {} : { reason }),
      conditions: more.conditions ?? [],
      initContainerStatuses: inits,
      containerStatuses: containers,
    },
  };
}

const notYet = container("app", waiting("PodInitializing"));
const done = container("done", ended(0, "Completed"));

/** The printed READY, STATUS and RESTARTS. */
const rows: readonly (readonly [name: string, scene: Scene, printed: string])[] = [
  ["a pod that runs", { containers: [up("app")] }, "1/1 Running 0"],
  ["a sidecar counts", { inits: [up("proxy")], beside: ["proxy"], containers: [up("app")] }, "2/2 Running 0"],
  [
    "a sidecar that is not ready",
    { inits: [container("proxy", running, { started: true })], beside: ["proxy"], containers: [up("app")] },
    "1/2 Running 0",
  ],
  [
    "a plain init container runs, started or not",
    { phase: "Pending", inits: [up("init")], containers: [notYet] },
    "0/1 Init:0/1 0",
  ],
  [
    "the second init container waits behind a sidecar",
    {
      phase: "Pending",
      inits: [up("proxy"), container("init", waiting("PodInitializing"))],
      beside: ["proxy"],
      containers: [notYet],
    },
    "1/2 Init:1/2 0",
  ],
  [
    "an init container is waited for by its reason",
    { phase: "Pending", inits: [container("init", waiting("ImagePullBackOff"))], containers: [notYet] },
    "0/1 Init:ImagePullBackOff 0",
  ],
  [
    "an init container failed, and its restarts count alone",
    {
      phase: "Pending",
      inits: [container("init", ended(2), { restartCount: 3 })],
      containers: [{ ...notYet, restartCount: 9 }],
    },
    "0/1 Init:ExitCode:2 3",
  ],
  ["an init container was killed", { inits: [container("i", ended(137, undefined, 9))] }, "0/0 Init:Signal:9 0"],
  [
    "an initialized pod is told by its containers",
    { inits: [container("i", running)], containers: [up("app")], conditions: [condition("Initialized")] },
    "1/1 Init:0/1 0",
  ],
  ["done inits are past", { inits: [done], containers: [notYet] }, "0/1 PodInitializing 0"],
  ["one waits", { containers: [up("app"), container("b", waiting("CrashLoopBackOff"))] }, "1/2 CrashLoopBackOff 0"],
  [
    "the first that has a word counts",
    { containers: [container("a", ended(1, "Error")), container("b", waiting("CrashLoopBackOff"))] },
    "0/2 Error 0",
  ],
  ["all are done", { phase: "Succeeded", containers: [done] }, "0/1 Completed 0"],
  ["one is done, the pod is not ready", { containers: [done, up("app")] }, "1/2 NotReady 0"],
  [
    "one is done, the pod is ready",
    { containers: [done, up("app")], conditions: [condition("Ready")] },
    "1/2 Running 0",
  ],
  ["one is done, one failed", { containers: [done, container("b", ended(3, "Error"))] }, "0/2 Error 0"],
  ["an exit code without a reason", { containers: [container("app", ended(3))] }, "0/1 ExitCode:3 0"],
  ["a signal without a reason", { containers: [container("app", ended(137, undefined, 9))] }, "0/1 Signal:9 0"],
  ["the pod's reason", { phase: "Failed", reason: "Evicted" }, "0/0 Evicted 0"],
  [
    "gates hold it",
    { phase: "Pending", conditions: [condition("PodScheduled", "False", { reason: "SchedulingGated" })] },
    "0/0 SchedulingGated 0",
  ],
  ["it is going", { containers: [up("app")], deleted: true }, "1/1 Terminating 0"],
  ["it is going and done", { phase: "Succeeded", containers: [done], deleted: true }, "0/1 Completed 0"],
  [
    "it is going and failed",
    { phase: "Failed", containers: [container("app", ended(1, "Error"))], deleted: true },
    "0/1 Error 0",
  ],
  [
    "it is going, and its node is lost",
    { reason: "NodeLost", containers: [up("app")], deleted: true },
    "1/1 Unknown 0",
  ],
  [
    "restarts of sidecars and containers, and since the last",
    {
      inits: [
        container("init", ended(0), { restartCount: 7 }),
        up("proxy", { restartCount: 1, lastState: { terminated: { finishedAt: past(24.5) } } }),
      ],
      beside: ["proxy"],
      containers: [up("app", { restartCount: 2, lastState: { terminated: { finishedAt: past(300) } } })],
    },
    "2/2 Running 3 (24s ago)",
  ],
];

describe("printed columns of a pod", () => {
  for (const [name, scene, printed] of rows) {
    it(name, () => {
      const { ready, status, restarts } = podCells(podOf(scene));
      assert.equal(`${ready} ${status} ${restarts}`, printed);
    });
  }
  it("prints ages in two units while the larger one is small", () => {
    const now = Date.parse("2026-01-02T03:04:05Z");
    const told = (seconds: number): string => age(new Date(now - seconds * 1000).toISOString(), now);
    const minutes = [119, 120, 599, 600].map(told);
    assert.deepEqual(minutes, ["119s", "2m", "9m59s", "10m"]);
    assert.deepEqual([3 * 3600, 7 * 3600 + 300, 47 * 3600].map(told), ["3h", "7h5m", "47h"]);
    assert.deepEqual([50 * 3600, 9 * 86_400].map(told), ["2d2h", "9d"]);
    assert.equal(age("", now), "<unknown>");
  });
});
