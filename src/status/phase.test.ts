import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { vectorText } from "../../test/support/vectors.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerState, ContainerStatus, PodPhase } from "../api/status.ts";
import { getPhase } from "./phase.ts";

const running: ContainerState = { running: { startedAt: null } };
const waiting: ContainerState = { waiting: {} };
const ended = (exitCode: number): ContainerState => ({ terminated: { exitCode, startedAt: null, finishedAt: null } });

function status(name: string, state: ContainerState, changed: Partial<ContainerStatus> = {}): ContainerStatus {
  const nothing = { lastState: {}, ready: false, restartCount: 0, image: "", imageID: "" };
  return { name, state, ...nothing, started: state.running !== undefined, ...changed };
}

/** Waits for its restart after this exit code. */
const restarting = (name: string, exitCode: number) => status(name, waiting, { lastState: ended(exitCode) });

const a: Container = { name: "a" };
const b: Container = { name: "b" };
const init: Container = { name: "init" };
const sidecar: Container = { name: "sidecar", restartPolicy: "Always" };

interface Case {
  readonly spec: Partial<Pod["spec"]>;
  readonly statuses: readonly ContainerStatus[];
  readonly terminal?: boolean;
  readonly initialized?: boolean;
  readonly phase: PodPhase;
}

const two = { containers: [a, b] };
const never = { ...two, restartPolicy: "Never" } as const;
const onFailure = { ...two, restartPolicy: "OnFailure" } as const;
const withInit = { containers: [a], initContainers: [init] };
const withSidecar = { containers: [a], initContainers: [sidecar] };
const sidecarNever = { ...withSidecar, restartPolicy: "Never" } as const;

const cases: Record<string, Case> = {
  "nothing is known of its containers": { spec: two, statuses: [], phase: "Pending" },
  "one container still waits for its first start": {
    spec: two,
    statuses: [status("a", running), status("b", waiting)],
    phase: "Pending",
  },
  "one container is unknown": { spec: two, statuses: [status("a", running)], phase: "Pending" },
  "all containers run": { spec: two, statuses: [status("a", running), status("b", running)], phase: "Running" },
  "one runs and one has failed for good": {
    spec: never,
    statuses: [status("a", running), status("b", ended(1))],
    phase: "Running",
  },
  "all have ended and restart always": {
    spec: two,
    statuses: [status("a", ended(0)), status("b", ended(1))],
    phase: "Running",
  },
  "all wait for a restart": { spec: two, statuses: [restarting("a", 1), restarting("b", 1)], phase: "Running" },
  "one of the ended ones will be restarted": {
    spec: onFailure,
    statuses: [status("a", ended(0)), status("b", ended(1))],
    phase: "Running",
  },
  "all have succeeded": {
    spec: onFailure,
    statuses: [status("a", ended(0)), status("b", ended(0))],
    phase: "Succeeded",
  },
  "all have ended, one badly": {
    spec: never,
    statuses: [status("a", ended(0)), status("b", ended(1))],
    phase: "Failed",
  },
  "it is stopped with one bad end": {
    spec: two,
    statuses: [status("a", ended(0)), status("b", ended(137))],
    terminal: true,
    phase: "Failed",
  },
  "it is stopped with good ends": {
    spec: two,
    statuses: [status("a", ended(0)), status("b", ended(0))],
    terminal: true,
    phase: "Succeeded",
  },
  "it is stopped while one waits for a restart": {
    spec: two,
    statuses: [status("a", ended(0)), restarting("b", 0)],
    terminal: true,
    phase: "Failed",
  },
  "an init container runs": {
    spec: withInit,
    statuses: [status("init", running), status("a", waiting)],
    phase: "Pending",
  },
  "an init container has failed and is tried again": {
    spec: withInit,
    statuses: [status("init", ended(1)), status("a", waiting)],
    phase: "Pending",
  },
  "an init container has failed for good": {
    spec: { ...withInit, restartPolicy: "Never" },
    statuses: [status("init", ended(1)), status("a", waiting)],
    phase: "Failed",
  },
  "an init container has succeeded": {
    spec: withInit,
    statuses: [status("init", ended(0)), status("a", running)],
    phase: "Running",
  },
  "its sidecar has not started": {
    spec: withSidecar,
    statuses: [status("sidecar", running, { started: false }), status("a", waiting)],
    phase: "Pending",
  },
  "its sidecar starts again": {
    spec: withSidecar,
    statuses: [status("sidecar", running, { started: false }), status("a", running)],
    initialized: true,
    phase: "Running",
  },
  "only its sidecar still runs": {
    spec: sidecarNever,
    statuses: [status("sidecar", running), status("a", ended(0))],
    phase: "Running",
  },
  "its sidecar has failed and all else succeeded": {
    spec: sidecarNever,
    statuses: [status("sidecar", ended(1)), status("a", ended(0))],
    phase: "Succeeded",
  },
};

for (const [name, { spec, statuses, terminal = false, initialized = false, phase }] of Object.entries(cases)) {
  test(`a pod is ${phase} when ${name}`, () => {
    assert.equal(getPhase(podWith(spec), { statuses, podIsTerminal: terminal, initialized }), phase);
  });
}

/** A container's situation, by the keys of the recording. */
const situations: Readonly<Record<string, (name: string) => readonly ContainerStatus[]>> = {
  missing: () => [],
  waiting: (name) => [status(name, waiting)],
  starting: (name) => [status(name, running, { started: false })],
  running: (name) => [status(name, running)],
  exited0: (name) => [status(name, ended(0))],
  exited1: (name) => [status(name, ended(1))],
  again0: (name) => [restarting(name, 0)],
  again1: (name) => [restarting(name, 1)],
};
const regularSituations = ["missing", "waiting", "running", "exited0", "exited1", "again0", "again1"];
const letters: Readonly<Record<string, PodPhase>> = { P: "Pending", R: "Running", S: "Succeeded", F: "Failed" };
const fromFile = { annotations: { "kubernetes.io/config.source": "file" } };

/** The columns of a row: container a, container b, terminal, initialized. */
const columns = regularSituations.flatMap((aNow) =>
  ["absent", ...regularSituations].flatMap((bNow) =>
    ["no", "yes", "static"].flatMap((terminal) =>
      [false, true].map((initialized) => ({ aNow, bNow, terminal, initialized })),
    ),
  ),
);

test("the phase of every small pod is that of Kubernetes 1.36.2", () => {
  const rows = vectorText("phases.txt")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  const present = (all: readonly { readonly container: Container; readonly now: string }[]) =>
    all.filter(({ now }) => now !== "absent");
  for (const row of rows) {
    const [restartPolicy, initNow = "", sidecarNow = "", recorded = ""] = row.split(" ");
    assert.equal(recorded.length, columns.length);
    const first = present([
      { container: init, now: initNow },
      { container: sidecar, now: sidecarNow },
    ]);
    for (const [index, { aNow, bNow, terminal, initialized }] of columns.entries()) {
      const regular = present([
        { container: a, now: aNow },
        { container: b, now: bNow },
      ]);
      const statuses = [...first, ...regular].flatMap(({ container, now }) => situations[now]?.(container.name) ?? []);
      const spec = {
        restartPolicy: restartPolicy as "Always",
        initContainers: first.map(({ container }) => container),
        containers: regular.map(({ container }) => container),
      };
      const pod = podWith(spec, terminal === "static" ? fromFile : {});
      const phase = getPhase(pod, { statuses, podIsTerminal: terminal !== "no", initialized });
      const expected = letters[recorded[index] ?? ""];
      const what = `${row.slice(0, 40)}: a ${aNow}, b ${bNow}, terminal ${terminal}, initialized ${initialized}`;
      if (phase !== expected) assert.fail(`${what}: ${phase}, not ${expected}`);
    }
  }
  assert.equal(rows.length * columns.length, 56_448);
});

test("stopping does not end a static pod", () => {
  const pod = podWith(two, fromFile);
  const statuses = [status("a", ended(0)), status("b", ended(0))];
  assert.equal(getPhase(pod, { statuses, podIsTerminal: true, initialized: true }), "Running");
});
