import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { readySandbox, runtimeStatus } from "../../test/support/runtime-status.ts";
import { sandboxId } from "../base/ids.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerStatus, PodCondition, PodPhase, PodStatus } from "../api/status.ts";
import { hasUsableSandbox, podConditions } from "./conditions.ts";

const status = (name: string, ready: boolean, changed: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name,
  ready,
  state: { waiting: {} },
  lastState: {},
  restartCount: 0,
  image: "",
  imageID: "",
  ...changed,
});

interface Situation {
  readonly spec?: Partial<Pod["spec"]>;
  readonly phase?: PodPhase;
  readonly init?: readonly ContainerStatus[];
  readonly containers?: readonly ContainerStatus[];
  readonly previous?: readonly PodCondition[];
}

const two = { containers: [{ name: "a" }, { name: "b" }] };

function conditions({ spec = two, phase = "Running", init = [], containers = [], previous }: Situation) {
  const pod = podWith(spec, { generation: 2 });
  const before: PodStatus | undefined = previous && { phase: "Running", conditions: previous };
  const list = podConditions({
    pod,
    podStatus: runtimeStatus(pod, []),
    phase,
    initStatuses: init,
    containerStatuses: containers,
    previous: before,
    now: 5000,
  });
  const text = (type: string): string => {
    const found = list.find((each) => each.type === type);
    return [found?.status, found?.reason, found?.message].filter((part) => part !== undefined).join(" ");
  };
  return { list, text };
}

test("conditions are in upstream's order, those of others first", () => {
  const foreign = { type: "example.com/gate", status: "True", lastProbeTime: null, lastTransitionTime: null } as const;
  const { list } = conditions({ previous: [foreign] });
  assert.deepEqual(
    list.map(({ type }) => type),
    ["example.com/gate", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"],
  );
  assert.ok(list.slice(1).every(({ observedGeneration }) => observedGeneration === 2));
});

test("the transition time stays while the status does", () => {
  const before = (type: string, is: "True" | "False"): PodCondition => ({
    type,
    status: is,
    lastProbeTime: null,
    lastTransitionTime: "1970-01-01T00:00:01Z",
  });
  const { list } = conditions({ previous: [before("PodScheduled", "True"), before("Ready", "True")] });
  const time = (type: string) => list.find((each) => each.type === type)?.lastTransitionTime;
  assert.equal(time("PodScheduled"), "1970-01-01T00:00:01Z");
  assert.equal(time("Ready"), "1970-01-01T00:00:05Z");
});

test("a pod is ready when all its containers and sidecars are", () => {
  const spec = { ...two, initContainers: [{ name: "i" }, { name: "s", restartPolicy: "Always" as const }] };
  const init = [status("i", false), status("s", true)];
  const ready = conditions({ spec, init, containers: [status("a", true), status("b", true)] });
  assert.deepEqual([ready.text("Ready"), ready.text("ContainersReady")], ["True", "True"]);
  const unready = conditions({ spec, init: [status("s", false)], containers: [status("b", false)] });
  assert.equal(
    unready.text("Ready"),
    "False ContainersNotReady containers with unknown status: [a], containers with unready status: [s b]",
  );
});

test("an ended pod is not ready, with that reason", () => {
  const containers = [status("a", false), status("b", true)];
  assert.equal(conditions({ containers, phase: "Succeeded" }).text("Ready"), "False PodCompleted");
  assert.equal(conditions({ containers, phase: "Failed" }).text("ContainersReady"), "False PodFailed");
  assert.equal(conditions({ containers, phase: "Succeeded" }).text("Initialized"), "True PodCompleted");
});

test("readiness gates of others count", () => {
  const spec = { containers: [{ name: "a" }], readinessGates: [{ conditionType: "x" }, { conditionType: "y" }] };
  const containers = [status("a", true)];
  const gate = (type: string, is: "True" | "False") => ({
    type,
    status: is,
    lastProbeTime: null,
    lastTransitionTime: null,
  });
  const { text } = conditions({ spec, containers, previous: [gate("x", "False")] });
  assert.equal(text("ContainersReady"), "True");
  assert.equal(
    text("Ready"),
    'False ReadinessGatesNotReady the status of pod readiness gate "x" is not "True", but False, ' +
      'corresponding condition of pod readiness gate "y" does not exist.',
  );
  assert.equal(
    conditions({ spec, containers, previous: [gate("x", "True"), gate("y", "True")] }).text("Ready"),
    "True",
  );
});

test("a pod is initialized when its init containers are done and its sidecars started, permanently", () => {
  const spec = { ...two, initContainers: [{ name: "i" }, { name: "s", restartPolicy: "Always" as const }] };
  const begun = [status("i", true), status("s", false, { started: false })];
  assert.equal(
    conditions({ spec, init: begun }).text("Initialized"),
    "False ContainersNotInitialized containers with incomplete status: [s]",
  );
  assert.equal(
    conditions({ spec, init: [status("i", true), status("s", false, { started: true })] }).text("Initialized"),
    "True",
  );
  const running = [status("a", false, { state: { running: { startedAt: null } } })];
  assert.equal(conditions({ spec, init: begun, containers: running }).text("Initialized"), "True");
  const previous = [{ type: "Initialized", status: "True", lastProbeTime: null, lastTransitionTime: null }] as const;
  assert.equal(conditions({ spec, init: begun, previous }).text("Initialized"), "True");
});

test("containers can start in a single ready sandbox of the right network with an address", () => {
  const pod = podWith(two);
  const usable = (...sandboxes: Parameters<typeof readySandbox>[0][]) =>
    hasUsableSandbox(pod, runtimeStatus(pod, [], sandboxes.map(readySandbox)));
  assert.equal(usable(), false);
  assert.equal(usable({}), true);
  assert.equal(usable({}, { id: sandboxId("old"), ready: false }), true);
  assert.equal(usable({}, { id: sandboxId("old") }), false);
  assert.equal(usable({ ready: false }), false);
  assert.equal(usable({ ips: [] }), false);
  assert.equal(usable({ hostNetwork: true, ips: [] }), false);
  const onHost = podWith({ ...two, hostNetwork: true });
  assert.equal(
    hasUsableSandbox(onHost, runtimeStatus(onHost, [], [readySandbox({ hostNetwork: true, ips: [] })])),
    true,
  );
});
