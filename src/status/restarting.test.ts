import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { runtimeContainer, runtimeStatus, statusInputs } from "../../test/support/runtime-status.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerStatus, PodStatus } from "../api/status.ts";
import type { ContainerStatus as RuntimeContainerStatus } from "../runtime/status/pod-status.ts";
import { generateAPIPodStatus } from "./generate.ts";
import { illegalTransition } from "./transitions.ts";

/** No container is restarted by policy: only the rule restarts them all. */
const pod: Pod = {
  metadata: { name: "p", namespace: "ns", uid: podUid("u") },
  spec: {
    restartPolicy: "Never",
    initContainers: [{ name: "init", image: "image" }],
    containers: [
      { name: "other", image: "image" },
      {
        name: "source",
        image: "image",
        restartPolicy: "Never",
        restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [88] } }],
      },
    ],
  },
};
const init = runtimeContainer("init", { state: "exited", reason: "Completed" });
const other = runtimeContainer("other");
const ended = runtimeContainer("source", { state: "exited", reason: "Error", exitCode: 88 });

/** The statuses after each of these observations. */
function statuses(...observations: readonly (readonly RuntimeContainerStatus[])[]): PodStatus[] {
  const all: PodStatus[] = [];
  for (const containers of observations) {
    const previous = all.at(-1);
    const status = generateAPIPodStatus(
      statusInputs(pod, { podStatus: runtimeStatus(pod, containers), previous, now: all.length * 1000 }),
    );
    assert.equal(illegalTransition(pod, previous, status), undefined);
    all.push(status);
  }
  return all;
}

const condition = (status: PodStatus | undefined): (string | undefined)[] => {
  const found = status?.conditions?.find(({ type }) => type === "AllContainersRestarting");
  return [found?.status, found?.reason];
};
const named = (status: PodStatus | undefined, name: string): ContainerStatus | undefined =>
  [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].find((each) => each.name === name);

test("AllContainersRestarting is True from the exit that requests it until all containers are removed", () => {
  const all = statuses([init, other, runtimeContainer("source")], [init, other, ended], [ended], []);
  assert.deepEqual(all.map(condition), [
    ["False", undefined],
    ["True", "RestartAllContainersStarted"],
    ["True", "RestartAllContainersStarted"],
    ["False", undefined],
  ]);
  assert.equal(all[1]?.conditions?.at(-1)?.type, "AllContainersRestarting", "the last one, as upstream writes them");
  assert.equal(all[2]?.conditions?.at(-1)?.lastTransitionTime, "1970-01-01T00:00:01Z");
});

test("a container that was removed for the restart waits, counts a restart and has it as its last state", () => {
  const [, , removed, gone] = statuses([init, other, runtimeContainer("source")], [init, other, ended], [ended], []);
  for (const name of ["init", "other", "source"]) {
    const status = named(gone, name);
    assert.equal(status?.state.waiting?.reason, "RestartingAllContainers");
    assert.deepEqual(
      [status.lastState.terminated?.reason, status.lastState.terminated?.exitCode, status.restartCount],
      ["RestartingAllContainers", 137, 1],
    );
    assert.deepEqual([status.ready, status.started, status.containerID], [false, false, undefined]);
  }
  assert.deepEqual(named(gone, "other"), named(removed, "other"), "counted once");
});

test("a restarting pod is Pending while its init containers run again, and keeps its containers' last states", () => {
  const again = runtimeContainer("init", { id: "init-1", restartCount: 1 });
  const running = [
    runtimeContainer("init", { id: "init-1", restartCount: 1, state: "exited", reason: "Completed" }),
    runtimeContainer("other", { id: "other-1", restartCount: 1 }),
    runtimeContainer("source", { id: "source-1", restartCount: 1 }),
  ];
  const all = statuses([init, other, runtimeContainer("source")], [init, other, ended], [ended], [], [again], running);
  assert.deepEqual(
    all.map(({ phase }) => phase),
    ["Running", "Running", "Running", "Running", "Pending", "Running"],
  );
  const source = named(all.at(-1), "source");
  assert.deepEqual([source?.lastState.terminated?.reason, source?.restartCount], ["RestartingAllContainers", 1]);
  assert.ok(all.every(({ initContainerStatuses }) => initContainerStatuses?.length === 1));
});

test("a run that finds the condition True, and the pod restarted, says that it has restarted", () => {
  const again = (name: string) => runtimeContainer(name, { id: `${name}-1`, restartCount: 1 });
  const done = runtimeContainer("init", { id: "init-1", restartCount: 1, state: "exited", reason: "Completed" });
  const all = statuses(
    [init, other, runtimeContainer("source")],
    [init, other, ended],
    [done, again("other"), again("source")],
  );
  assert.deepEqual(condition(all.at(-1)), ["False", undefined]);
  for (const name of ["init", "other", "source"]) {
    const { lastState, restartCount } = named(all.at(-1), name) ?? assert.fail();
    assert.deepEqual([lastState.terminated?.reason, restartCount], ["RestartingAllContainers", 1], name);
  }
  const [, , early] = statuses([init, other, runtimeContainer("source")], [init, other, ended], [again("init")]);
  assert.deepEqual(condition(early), ["False", undefined]);
  assert.equal(named(early, "source")?.state.waiting?.reason, "RestartingAllContainers", "not created yet");
});

test("without the container whose exit requests it no restart is under way: others that are left stay", () => {
  const all = statuses([init, other, runtimeContainer("source")], [init, other, ended], [init, other]);
  assert.deepEqual(condition(all.at(-1)), ["False", undefined]);
});

test("a pod without such a rule has no such condition, and one that has ended restarts nothing", () => {
  const plain: Pod = { ...pod, spec: { ...pod.spec, containers: [{ name: "other", image: "image" }] } };
  const status = generateAPIPodStatus(statusInputs(plain, { podStatus: runtimeStatus(plain, [other]) }));
  assert.deepEqual(condition(status), [undefined, undefined]);
  const failure = { cause: { code: "DeadlineExceeded", message: "" }, outcome: "failed" } as const;
  const failed = generateAPIPodStatus(statusInputs(pod, { podStatus: runtimeStatus(pod, [init, ended]), failure }));
  assert.deepEqual(condition(failed), ["False", "PodFailed"]);
});
