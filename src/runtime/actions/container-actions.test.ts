import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testContainer, testPod, testSandbox, testStatus } from "../../../test/support/observed.ts";
import type { Container } from "../../api/container.ts";
import type { PodSpec } from "../../api/pod.ts";
import { containerId } from "../../base/ids.ts";
import { computePodActions } from "./pod-actions.ts";
import type { ContainerStatus } from "../status/pod-status.ts";
import type { Unhealthy } from "./container-decision.ts";
import { firstStart, type PodActionsContext } from "./pod-actions-context.ts";

const liveness: Unhealthy = { cause: { code: "LivenessProbeFailed", message: "liveness probe failed 3/3" } };
const startup: Unhealthy = {
  cause: { code: "StartupProbeFailed", message: "startup probe failed 30/30" },
  graceSeconds: 4,
};
const restart42 = [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }];

/** Whether a container that is stopped for its probe, beside one that runs on, is to run again. */
function afterUnhealthy(unhealthy: Unhealthy, spec: Partial<PodSpec>, container: Partial<Container> = {}) {
  const containers = [
    { name: "c", image: "busybox", ...container },
    { name: "well", image: "busybox" },
  ];
  const context = { ...plain, unhealthy: ({ name }: Container) => (name === "c" ? unhealthy : undefined) };
  const status = testStatus([testSandbox()], [testContainer(), testContainer({ name: "well" })]);
  const { containersToKill, killPod } = computePodActions(testPod({ containers, ...spec }), status, context);
  assert.equal(killPod, undefined);
  return containersToKill[0];
}

const exited = (name: string, exitCode: number): ContainerStatus =>
  testContainer({ name, state: "exited", exitCode, finishedAt: 3n });

const plain: PodActionsContext = { ...firstStart, nowMs: 1000 };

describe("a container that fails its probe", () => {
  const rows: readonly [string, Unhealthy, Partial<PodSpec>, Partial<Container>, boolean][] = [
    ["liveness under Always", liveness, { restartPolicy: "Always" }, {}, true],
    ["liveness under OnFailure", liveness, { restartPolicy: "OnFailure" }, {}, true],
    ["liveness under Never", liveness, { restartPolicy: "Never" }, {}, false],
    ["startup under Always", startup, {}, {}, true],
    [
      "its own Always in a pod that never restarts",
      liveness,
      { restartPolicy: "Never" },
      { restartPolicy: "Always" },
      true,
    ],
    ["its own Never in a pod that always restarts", liveness, {}, { restartPolicy: "Never" }, false],
    [
      "its own Never with a rule for exit codes, which has no say",
      liveness,
      {},
      { restartPolicy: "Never", restartPolicyRules: restart42 },
      false,
    ],
  ];
  for (const [name, unhealthy, spec, container, again] of rows) {
    test(`is stopped and ${again ? "runs again" : "stays ended"}: ${name}`, () => {
      const kill = afterUnhealthy(unhealthy, spec, container);
      assert.deepEqual([kill?.cause, kill?.restarts], [unhealthy.cause, again]);
      assert.equal(kill?.graceSeconds, unhealthy.graceSeconds);
    });
  }
});

describe("a pod whose remaining containers are being stopped for good", () => {
  const sidecar: Container = { name: "s", image: "busybox", restartPolicy: "Always" };
  const never: Partial<PodSpec> = { restartPolicy: "Never", initContainers: [sidecar] };
  const runs = (name: string): ContainerStatus => testContainer({ name, id: containerId(`id-${name}`) });
  /** What is decided when containers of these names have failed their liveness probe. */
  function decide(
    spec: Partial<PodSpec>,
    unhealthy: readonly string[],
    instances: readonly ContainerStatus[] = [runs("s"), runs("c")],
    changed: Partial<PodActionsContext> = {},
  ) {
    const pod = testPod({ ...never, containers: [{ name: "c", image: "busybox" }], ...spec });
    const context: PodActionsContext = {
      ...plain,
      unhealthy: ({ name }) => (unhealthy.includes(name) ? liveness : undefined),
      ...changed,
    };
    return computePodActions(pod, testStatus([testSandbox()], [...instances]), context);
  }
  const two = { containers: ["c", "d"].map((name) => ({ name, image: "busybox" })) };

  test("is stopped as a whole: its sidecars are no longer managed", () => {
    for (const sidecarNow of [runs("s"), exited("s", 1)]) {
      const actions = decide({}, ["c", "s"], [sidecarNow, runs("c")]);
      assert.equal(actions.killPod?.code, "LastContainerUnhealthy");
      assert.match(
        actions.killPod?.message ?? "",
        /remaining containers \(c\) are not restarted: liveness probe failed 3\/3/,
      );
      assert.deepEqual([actions.containersToKill, actions.containersToStart, actions.waits], [[], [], []]);
    }
  });

  test("whether the others have ended, or are or will be stopped for the same reason", () => {
    assert.equal(decide(two, ["c"], [runs("c"), exited("d", 0)]).killPod?.code, "LastContainerUnhealthy");
    const both = decide(two, ["c", "d"], [runs("c"), runs("d")], { busy: new Set(["d"]) });
    assert.match(both.killPod?.message ?? "", /containers \(c, d\) are not/);
    assert.equal(decide(two, ["d"], [exited("c", 0), runs("d")], { busy: new Set(["d"]) }).killPod !== undefined, true);
  });

  test("unless something may still run: another container, or the same one again", () => {
    assert.equal(decide(two, ["c"], [runs("c"), runs("d")]).killPod, undefined);
    assert.equal(decide(two, ["c"], [runs("c")]).killPod, undefined, "d has yet to start");
    assert.equal(decide({ restartPolicy: "OnFailure" }, ["c"]).killPod, undefined);
    assert.equal(decide({ restartPolicy: "Always" }, ["c"]).killPod, undefined);
    const ruled = { name: "c", image: "busybox", restartPolicy: "Never", restartPolicyRules: restart42 } as const;
    assert.equal(decide({ containers: [ruled] }, ["c"]).killPod, undefined);
    const changed = testContainer({ name: "c", hash: "another" });
    assert.equal(decide({}, ["c"], [runs("s"), changed]).killPod, undefined, "it runs anew in any case");
    assert.equal(decide({ restartPolicy: "Always" }, ["s"]).containersToKill[0]?.container.name, "s");
  });

  test("a container's own Never counts, and ephemeral containers do not keep the pod running", () => {
    const own = { name: "c", image: "busybox", restartPolicy: "Never" } as const;
    assert.equal(decide({ restartPolicy: "Always", containers: [own] }, ["c"]).killPod?.code, "LastContainerUnhealthy");
    const ephemeralContainers = [{ name: "e", image: "busybox" }];
    const actions = decide({ ephemeralContainers }, ["c"], [runs("c"), runs("e")]);
    assert.equal(actions.killPod?.code, "LastContainerUnhealthy");
  });

  test("gives that container its probe's grace period, and all others the pod's", () => {
    const slow = decide({}, ["c"], undefined, { unhealthy: () => startup });
    assert.deepEqual(slow.graces, [{ id: "id-c", seconds: 4 }]);
    assert.equal(decide({}, ["c"]).graces, undefined);
  });
});

test("a container with a changed name or image is restarted; one with a changed command is left alone", () => {
  const act = (change: Partial<Container>) => {
    const pod = testPod({ containers: [{ name: "c", image: "busybox", ...change }] });
    const { containersToKill, containersToStart } = computePodActions(
      pod,
      testStatus([testSandbox()], [testContainer()]),
      plain,
    );
    return [containersToKill.length, containersToStart.map(({ attempt }) => attempt)];
  };
  assert.deepEqual(act({ image: "busybox:2" }), [1, [1]]);
  assert.deepEqual(act({ command: ["other"], env: [{ name: "A", value: "1" }] }), [0, []]);
});

/** What is started next in a pod whose init container has ended with code 1; the end of the pod as its code. */
function afterInitFailure(podPolicy: PodSpec["restartPolicy"], own: Partial<Container>): string {
  const pod = testPod({
    ...(podPolicy === undefined ? {} : { restartPolicy: podPolicy }),
    initContainers: [{ name: "i", image: "busybox", ...own }],
  });
  const { killPod, containersToStart } = computePodActions(pod, testStatus([testSandbox()], [exited("i", 1)]), plain);
  return killPod?.code ?? containersToStart.map(({ container, attempt }) => `${container.name}@${attempt}`).join(",");
}

test("a failed init container's own policy and rules take precedence over its pod's", () => {
  assert.equal(afterInitFailure("Never", { restartPolicy: "OnFailure" }), "i@1");
  assert.equal(afterInitFailure("Always", { restartPolicy: "Never" }), "InitContainerFailed");
  const again = { restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [1] } }] };
  assert.equal(afterInitFailure("Never", { restartPolicy: "Never", ...again }), "i@1");
});
