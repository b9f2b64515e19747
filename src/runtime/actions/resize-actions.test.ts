import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../api/container.ts";
import type { Pod, PodSpec } from "../../api/pod.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../../test/support/observed.ts";
import { resourcesOf } from "../../resources/resizable.ts";
import {
  asReported,
  decideResize,
  describeResize,
  isResizing,
  type PodResize,
  withCarriedOut,
} from "./resize-actions.ts";
import type { ResizeFacts } from "./pod-actions-context.ts";

const cause = { code: "Resync", message: "a test" } as const;

function container(name: string, cpu: string, memory: string, more: Partial<Container> = {}): Container {
  return { name, image: "busybox", resources: { requests: { cpu, memory }, limits: { cpu, memory } }, ...more };
}

const running = testStatus(
  [testSandbox()],
  ["a", "b", "i"].map((name) => testContainer({ name })),
);

/** What is decided for a pod that has the resources of another version of it. */
function decided(
  had: Partial<PodSpec>,
  granted: Partial<PodSpec>,
  facts: Partial<ResizeFacts> = {},
): PodResize | undefined {
  const before = testPod(had);
  const resize = { actuated: resourcesOf(before), underWay: false, retryAtMs: undefined, cause, ...facts };
  return decideResize(testPod(granted), running, { nowMs: 0, busy: new Set(), resize }, new Set());
}

const names = (resize: PodResize | undefined): string[] =>
  (resize?.updates ?? []).map(({ container: { name } }) => name);
const restarted = (resize: PodResize | undefined): string[] =>
  (resize?.restarts ?? []).map(({ start }) => `${start.container.name} ${start.kind} ${start.attempt}`);

test("only a running container whose resources differ from its allocation is resized", () => {
  const resize = decided(
    { containers: [container("a", "1", "1Gi"), container("b", "1", "1Gi")] },
    { containers: [container("a", "1", "1Gi"), container("b", "1500m", "1Gi")] },
  );
  assert.deepEqual(names(resize), ["b"]);
  assert.deepEqual(restarted(resize), []);
  assert.equal(resize?.updates[0] && describeResize(resize.updates[0]), "cpu request 1 → 1500m, cpu limit 1 → 1500m");
});

test("equal amounts in different notations are equal", () => {
  const spec = { containers: [container("a", "1", "1Gi")] };
  assert.equal(decided(spec, { containers: [container("a", "1000m", "1024Mi")] }), undefined);
});

test("the changed resource's resizePolicy decides about a restart", () => {
  const policy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
  const had = { containers: [container("a", "1", "1Gi", { resizePolicy: policy })] };
  const cpu = decided(had, { containers: [container("a", "2", "1Gi", { resizePolicy: policy })] });
  assert.deepEqual([names(cpu), restarted(cpu)], [["a"], []]);
  const memory = decided(had, { containers: [container("a", "2", "2Gi", { resizePolicy: policy })] });
  assert.deepEqual([names(memory), restarted(memory)], [[], ["a regular 1"]]);
});

test("running sidecars and init containers are resized like the others", () => {
  const had = {
    initContainers: [container("i", "1", "1Gi", { restartPolicy: "Always" })],
    containers: [container("a", "1", "1Gi")],
  };
  const granted = { ...had, initContainers: [container("i", "2", "1Gi", { restartPolicy: "Always" })] };
  assert.deepEqual(names(decided(had, granted)), ["i"]);
  const policy = [{ resourceName: "cpu", restartPolicy: "RestartContainer" }];
  const restarting = {
    ...had,
    initContainers: [container("i", "2", "1Gi", { restartPolicy: "Always", resizePolicy: policy })],
  };
  assert.deepEqual(restarted(decided(had, restarting)), ["i sidecar 1"]);
  const first = { ...had, initContainers: [container("i", "1", "1Gi")] };
  assert.deepEqual(names(decided(first, { ...first, initContainers: [container("i", "2", "1Gi")] })), ["i"]);
});

test("nothing is resized during a resize, before its next attempt, or with unknown resources", () => {
  const had = { containers: [container("a", "1", "1Gi")] };
  const granted = { containers: [container("a", "2", "1Gi")] };
  assert.deepEqual(names(decided(had, granted)), ["a"]);
  assert.equal(decided(had, granted, { underWay: true }), undefined);
  assert.equal(decided(had, granted, { retryAtMs: 1 }), undefined);
  assert.equal(decided(had, granted, { actuated: undefined }), undefined);
  assert.equal(decided(had, granted, { actuated: { containers: new Map(), pod: undefined } }), undefined);
});

test("containers that do not run or have another action are not resized, nor any during an operation", () => {
  const pod: Pod = testPod({
    containers: [container("a", "2", "1Gi"), container("b", "2", "1Gi"), container("c", "2", "1Gi")],
  });
  const before = testPod({ containers: ["a", "b", "c"].map((name) => container(name, "1", "1Gi")) });
  const resize = { actuated: resourcesOf(before), underWay: false, retryAtMs: undefined, cause };
  const status = testStatus([testSandbox()], [...running.containers, testContainer({ name: "c", state: "exited" })]);
  const decide = (busy: string[], told: string[]): PodResize | undefined =>
    decideResize(pod, status, { nowMs: 0, busy: new Set(busy), resize }, new Set(told));
  assert.deepEqual(names(decide([], ["b"])), ["a"]);
  assert.equal(decide([], ["a", "b"]), undefined);
  assert.equal(decide(["b"], []), undefined);
  assert.equal(isResizing(pod, status, resize.actuated), true);
});

test("pod-level limits apply to containers without any (KEP-2837), and change the pod's cgroup", () => {
  const free: Container = { name: "a", image: "busybox" };
  const limited = container("b", "1", "1Gi");
  const had = { resources: { limits: { cpu: "2", memory: "2Gi" } }, containers: [free, limited] };
  const granted = { ...had, resources: { limits: { cpu: "3", memory: "2Gi" } } };
  assert.deepEqual(names(decided(had, granted)), ["a"]);
  const requests = { ...had, resources: { limits: { cpu: "2", memory: "2Gi" }, requests: { cpu: "1500m" } } };
  const resize = decided(had, requests);
  assert.deepEqual([names(resize), restarted(resize)], [[], []]);
  assert.notEqual(resize, undefined);
});

test("without a record the runtime's resources count, and nothing restarts", () => {
  const policy = [{ resourceName: "cpu", restartPolicy: "RestartContainer" }];
  const pod = testPod({ containers: [container("a", "300m", "1Gi", { resizePolicy: policy })] });
  const told = (cpuLimit: bigint): PodResize | undefined => {
    const resources = { cpuRequest: 300n, cpuLimit, memoryLimit: 1n << 30n };
    const status = testStatus([testSandbox()], [testContainer({ name: "a", resources })]);
    const resize = { actuated: undefined, underWay: false, retryAtMs: undefined, cause };
    return decideResize(pod, status, { nowMs: 0, busy: new Set(), resize }, new Set());
  };
  assert.equal(told(300n), undefined);
  assert.deepEqual([names(told(200n)), restarted(told(200n))], [["a"], []]);
});

test("after a failed resize that may have taken effect, the runtime's reported resources count", () => {
  const recorded = resourcesOf(testPod({ containers: [container("a", "200m", "1Gi"), container("b", "1", "1Gi")] }));
  const told = (resources: { cpuRequest?: bigint; cpuLimit?: bigint; memoryLimit?: bigint }) => {
    const amounts = { cpuRequest: undefined, cpuLimit: undefined, memoryLimit: undefined, ...resources };
    return asReported(recorded, testStatus([testSandbox()], [testContainer({ name: "a", resources: amounts })]));
  };
  const had = { limits: { cpu: "200m", memory: "1Gi" }, requests: { cpu: "200m", memory: "1Gi" } };
  assert.deepEqual(told({ cpuRequest: 200n, cpuLimit: 200n, memoryLimit: 1n << 30n }).containers.get("a"), had);
  assert.deepEqual(told({}).containers.get("a"), had, "it tells nothing");
  assert.deepEqual(told({ cpuRequest: 200n, cpuLimit: 200n, memoryLimit: 2n << 30n }).containers.get("a"), {
    ...had,
    limits: { cpu: "200m", memory: "2Gi" },
  });
  assert.deepEqual(told({ cpuRequest: 300n, cpuLimit: 400n, memoryLimit: 1n << 30n }).containers.get("a"), {
    limits: { cpu: "400m", memory: "1Gi" },
    requests: { cpu: "300m", memory: "1Gi" },
  });
  assert.equal(told({ memoryLimit: 1n }).containers.get("b"), recorded.containers.get("b"), "it does not run");
});

test("after a resize that an earlier run could not record, only what the runtime reports counts as done", () => {
  const had = container("a", "200m", "1Gi");
  const recorded = resourcesOf(testPod({ containers: [had] }));
  const granted = (cpu: string, memory: string, requested = memory): Container => ({
    ...had,
    resources: { requests: { cpu, memory: requested }, limits: { cpu, memory } },
  });
  const noted = (to: Container, cpu: bigint, memoryLimit: bigint) => {
    const resources = { cpuRequest: cpu, cpuLimit: cpu, memoryLimit };
    const status = testStatus([testSandbox()], [testContainer({ name: "a", resources })]);
    return withCarriedOut(recorded, status, testPod({ containers: [to] })).containers.get("a");
  };
  const gi = 1n << 30n;
  assert.deepEqual(noted(granted("700m", "4Gi"), 700n, 4n * gi), granted("700m", "4Gi").resources, "all of it");
  assert.deepEqual(noted(granted("700m", "4Gi"), 700n, gi), granted("700m", "1Gi").resources, "CPU alone");
  assert.deepEqual(noted(granted("700m", "4Gi"), 200n, gi), had.resources, "nothing");
  assert.deepEqual(noted(granted("200m", "1Gi", "2Gi"), 200n, gi), had.resources, "a request for memory can't be seen");
  assert.deepEqual(noted(granted("700m", "1Gi"), 700n, gi - 4096n), granted("700m", "1Gi").resources, "by others");
});
