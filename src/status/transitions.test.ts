import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { PodSpec } from "../api/pod.ts";
import type { ContainerState, ContainerStatus, PodStatus } from "../api/status.ts";
import { getPhase } from "./phase.ts";
import { illegalTransition, terminatedStatus } from "./transitions.ts";

const running: ContainerState = { running: { startedAt: null } };
const waiting: ContainerState = { waiting: {} };
const ended = (exitCode: number): ContainerState => ({ terminated: { exitCode, startedAt: null, finishedAt: null } });

const status = (name: string, state: ContainerState, lastState: ContainerState = {}): ContainerStatus => ({
  name,
  state,
  lastState,
  ready: true,
  restartCount: 0,
  image: "",
  imageID: "",
});
const podStatus = (containers: readonly ContainerStatus[], init?: readonly ContainerStatus[]): PodStatus => ({
  phase: "Running",
  containerStatuses: containers,
  ...(init && { initContainerStatuses: init }),
});

test("a container that has ended for good does not run again", () => {
  const pod = podWith({ containers: [{ name: "c" }], restartPolicy: "OnFailure" });
  const from = (before: ContainerState, after: ContainerState) =>
    illegalTransition(pod, podStatus([status("c", before)]), podStatus([status("c", after)]));
  assert.match(from(ended(0), running) ?? "", /terminated container c attempted illegal transition/);
  assert.match(from(ended(0), waiting) ?? "", /terminated container c/);
  assert.equal(from(ended(1), running), undefined);
  assert.equal(from(ended(0), ended(0)), undefined);
  assert.equal(from(running, waiting), undefined);
  assert.equal(illegalTransition(pod, undefined, podStatus([status("c", running)])), undefined);
});

test("a container whose image was changed restarts, whatever its policy", () => {
  const pod = podWith({ containers: [{ name: "c" }], restartPolicy: "Never" });
  const before = podStatus([{ ...status("c", ended(137)), image: "web:1" }]);
  const after = (image: string): PodStatus => podStatus([{ ...status("c", running), image }]);
  assert.equal(illegalTransition(pod, before, after("web:2")), undefined);
  assert.match(illegalTransition(pod, before, after("web:1")) ?? "", /terminated container c/);
});

test("another instance of a container is reported as running, whatever its policy", () => {
  const pod = podWith({ containers: [{ name: "c" }], restartPolicy: "Never" });
  const instance = (containerID: string | undefined, state: ContainerState): PodStatus =>
    podStatus([{ ...status("c", state), ...(containerID !== undefined && { containerID }) }]);
  const before = instance("c1", ended(137));
  for (const state of [running, waiting]) {
    assert.equal(illegalTransition(pod, before, instance("c2", state)), undefined);
    for (const id of ["c1", undefined]) {
      assert.match(illegalTransition(pod, before, instance(id, state)) ?? "", /terminated container c/);
    }
  }
});

test("a container that is restarted for its resize runs again after a successful exit, under OnFailure too", () => {
  const illegal = (restartPolicy: string): string | undefined => {
    const container = { name: "c", resizePolicy: [{ resourceName: "cpu", restartPolicy }] };
    const pod = podWith({ containers: [container], restartPolicy: "OnFailure" });
    return illegalTransition(pod, podStatus([status("c", ended(0))]), podStatus([status("c", running)]));
  };
  assert.equal(illegal("RestartContainer"), undefined);
  assert.match(illegal("NotRequired") ?? "", /terminated container c/);
});

test("an init container runs again in a new sandbox, but not where the pod never restarts", () => {
  const from = (restartPolicy: "Never" | "OnFailure", sidecars: PodSpec["initContainers"] = []) => {
    const pod = podWith({ containers: [{ name: "c" }], initContainers: [{ name: "i" }, ...sidecars], restartPolicy });
    return illegalTransition(pod, podStatus([], [status("i", ended(0))]), podStatus([], [status("i", running)]));
  };
  assert.match(from("Never") ?? "", /terminated container i/);
  assert.equal(from("OnFailure"), undefined);
  assert.equal(from("Never", [{ name: "s", restartPolicy: "Always" }]), undefined);
});

const states = (statuses: readonly ContainerStatus[] | undefined) =>
  (statuses ?? []).map(({ state }) => state.terminated?.exitCode ?? "none");

test("when a pod is gone, its started containers have ended", () => {
  const pod = podWith({ containers: [{ name: "a" }, { name: "b" }] });
  const { phase, containerStatuses } = terminatedStatus(pod, podStatus([status("a", ended(0)), status("b", running)]));
  assert.equal(phase, "Failed");
  assert.deepEqual(states(containerStatuses), [0, 137]);
  assert.deepEqual([containerStatuses?.[1]?.ready, containerStatuses?.[1]?.started], [false, false]);
});

test("containers that never had their turn keep waiting", () => {
  const pod = podWith({ containers: [{ name: "c" }], initContainers: [{ name: "i" }, { name: "j" }, { name: "k" }] });
  const init = [status("i", ended(0)), status("j", running), status("k", waiting)];
  const gone = terminatedStatus(pod, podStatus([status("c", waiting)], init));
  assert.deepEqual(states(gone.initContainerStatuses), [0, 137, "none"]);
  assert.deepEqual(states(gone.containerStatuses), ["none"]);
  const untouched = terminatedStatus(
    pod,
    podStatus(
      [status("c", waiting)],
      init.map(({ name }) => status(name, waiting)),
    ),
  );
  assert.deepEqual(states(untouched.initContainerStatuses), [137, "none", "none"]);
});

test("regular containers could run once the last init container was done or the last sidecar had started", () => {
  const regular = [status("c", waiting)];
  const plain = podWith({ containers: [{ name: "c" }], initContainers: [{ name: "i" }] });
  assert.deepEqual(
    states(terminatedStatus(plain, podStatus(regular, [status("i", ended(0))])).containerStatuses),
    [137],
  );
  const side = podWith({ containers: [{ name: "c" }], initContainers: [{ name: "i", restartPolicy: "Always" }] });
  const started = { ...status("i", running), started: true };
  assert.deepEqual(states(terminatedStatus(side, podStatus(regular, [started])).containerStatuses), [137]);
});

test("an ended pod keeps its phase, and so does a static one", () => {
  const pod = podWith({ containers: [] });
  assert.equal(terminatedStatus(pod, { phase: "Succeeded" }).phase, "Succeeded");
  const fixed = podWith({ containers: [] }, { annotations: { "kubernetes.io/config.source": "file" } });
  assert.equal(terminatedStatus(fixed, { phase: "Running" }).phase, "Running");
});

test("a static pod without started containers stays Pending, whatever their assumed exits", () => {
  for (const restartPolicy of ["Never", "OnFailure", "Always"] as const) {
    for (const initContainers of [[], [{ name: "i" }]]) {
      const spec = { containers: [{ name: "c" }], initContainers, restartPolicy };
      const pod = podWith(spec, { annotations: { "kubernetes.io/config.source": "file" } });
      const init = initContainers.map(({ name }) => status(name, waiting));
      const gone = terminatedStatus(pod, { ...podStatus([status("c", waiting)], init), phase: "Pending" });
      assert.equal(gone.phase, "Pending", restartPolicy);
      assert.equal(terminatedStatus(pod, gone).phase, "Pending", "nor later");
      const { initContainerStatuses = [], containerStatuses = [] } = gone;
      const statuses = [...initContainerStatuses, ...containerStatuses];
      assert.equal(getPhase(pod, { statuses, podIsTerminal: true, initialized: false }), "Pending");
      // So while a container that was created but never started is still being removed.
      const waits = statuses.map((each) => ({ ...each, state: waiting, lastState: each.state }));
      assert.equal(getPhase(pod, { statuses: waits, podIsTerminal: true, initialized: false }), "Pending");
    }
  }
});

test("a static pod has ended once its last container is assumed to have exited", () => {
  const pod = podWith(
    { containers: [{ name: "a" }, { name: "b" }], restartPolicy: "Never" },
    { annotations: { "kubernetes.io/config.source": "file" } },
  );
  const pending = { ...podStatus([status("a", ended(0)), status("b", waiting)]), phase: "Pending" } as const;
  assert.equal(terminatedStatus(pod, pending).phase, "Failed");
  const always = { ...pod, spec: { ...pod.spec, restartPolicy: "Always" } } as const;
  assert.equal(terminatedStatus(always, pending).phase, "Pending", "one of them has never run");
});
