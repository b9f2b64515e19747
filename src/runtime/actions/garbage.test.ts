import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testContainer, testSandbox, testStatus } from "../../../test/support/observed.ts";
import { containerId, sandboxId } from "../../base/ids.ts";
import { containerGarbage, defaultGarbagePolicy, nodeGarbage, sandboxGarbage } from "./garbage.ts";
import type { ContainerState, ContainerStatus, PodStatus } from "../status/pod-status.ts";

/** Instances of one container, newest first: `c3`, `c2` … */
function instances(name: string, states: readonly ContainerState[]): ContainerStatus[] {
  return states.map((state, index) => {
    const restartCount = states.length - 1 - index;
    const createdAt = BigInt(restartCount) * 1_000_000_000n;
    return testContainer({ name, id: containerId(`${name}${restartCount}`), state, restartCount, createdAt });
  });
}

const ids = (containers: readonly ContainerStatus[]): string[] => containers.map(({ id }) => id);

describe("containerGarbage", () => {
  const cases: readonly (readonly [string, readonly ContainerState[], number, readonly string[]])[] = [
    ["one dead instance beside the running one stays", ["running", "exited"], 1, []],
    ["of several dead ones the newest stays", ["running", "exited", "exited", "exited"], 1, ["c1", "c0"]],
    ["a dead newest instance is the one that stays", ["exited", "exited"], 1, ["c0"]],
    ["unknown ones count as dead", ["running", "exited", "unknown"], 1, ["c0"]],
    ["what was made and never started is not garbage", ["created", "exited", "exited"], 1, ["c0"]],
    ["with none to be kept the record of the last run stays all the same", ["exited", "exited"], 0, ["c0"]],
    ["also when the next run was made and has not started yet", ["created", "exited", "exited"], 0, ["c0"]],
    ["with none to be kept a running container keeps no dead one", ["running", "exited"], 0, ["c0"]],
    ["a negative number keeps all", ["exited", "exited", "exited"], -1, []],
  ];
  for (const [name, states, maxPerPodContainer, expected] of cases) {
    test(name, () => {
      const status = testStatus([testSandbox()], instances("c", states));
      assert.deepEqual(ids(containerGarbage(status, { ...defaultGarbagePolicy, maxPerPodContainer }, 0)), expected);
    });
  }

  test("each container of the pod is counted by itself", () => {
    const status = testStatus([], [...instances("a", ["exited", "exited"]), ...instances("b", ["exited"])]);
    assert.deepEqual(ids(containerGarbage(status, defaultGarbagePolicy, 0)), ["a0"]);
  });

  test("young containers are not garbage, and do not count against older ones", () => {
    const policy = { ...defaultGarbagePolicy, minAgeMs: 60_000 };
    const status = testStatus([], instances("c", ["running", "exited", "exited", "exited"]));
    assert.deepEqual(ids(containerGarbage(status, policy, 60_500)), []);
    assert.deepEqual(ids(containerGarbage(status, policy, 61_500)), ["c0"]);
    assert.deepEqual(ids(containerGarbage(status, policy, 70_000)), ["c1", "c0"]);
  });
});

describe("nodeGarbage", () => {
  const pod = (name: string, states: readonly ContainerState[]): PodStatus => testStatus([], instances(name, states));
  const removed = (pods: readonly PodStatus[], maxContainers: number): string[] =>
    nodeGarbage(pods, { ...defaultGarbagePolicy, maxContainers }, 0).map(({ container }) => container.id);
  const pods = [pod("a", ["running", "exited", "exited", "exited"]), pod("b", ["exited", "exited"])];

  test("without a cap nothing is removed", () => assert.deepEqual(removed(pods, -1), []));
  test("below the cap nothing is removed", () => assert.deepEqual(removed(pods, 5), []));
  test("a container with more than its share loses its oldest instances first", () =>
    assert.deepEqual(removed(pods, 4), ["a0"]));
  test("each container loses the instances beyond its share", () =>
    assert.deepEqual(removed(pods, 2), ["a0", "b0", "a1"]));
  test("the newest instance of a container is never removed", () => {
    assert.deepEqual(removed(pods, 0), ["a0", "b0", "a1", "a2"]);
  });
});

describe("sandboxGarbage", () => {
  const sandbox = (attempt: number, ready = false): ReturnType<typeof testSandbox> =>
    testSandbox({ id: sandboxId(`s${attempt}`), attempt, ready });
  const inSandbox = (attempt: number): ContainerStatus =>
    testContainer({ sandboxId: sandboxId(`s${attempt}`), state: "exited" });

  test("the newest stays even if dead, older dead ones are removed", () => {
    assert.deepEqual(
      sandboxGarbage(testStatus([sandbox(2), sandbox(1), sandbox(0)])).map(({ id }) => id),
      ["s1", "s0"],
    );
  });
  test("an older one that is ready stays", () => {
    assert.deepEqual(sandboxGarbage(testStatus([sandbox(1, true), sandbox(0, true)])), []);
  });
  test("an older one with a container stays", () => {
    assert.deepEqual(sandboxGarbage(testStatus([sandbox(1, true), sandbox(0)], [inSandbox(0)])), []);
  });
});
