import assert from "node:assert/strict";
import { test } from "node:test";
import { runtimeContainer, runtimeStatus } from "../../../test/support/runtime-status.ts";
import { testPod } from "../../../test/support/observed.ts";
import type { PodResources } from "../../resources/resource-checkpoint.ts";
import type { ContainerResources } from "../status/pod-status.ts";
import { disputed, withCgroups } from "./reported-resources.ts";

const mebibyte = 1n << 20n;

/** What was recorded of container `c`. */
function recorded(cpu: string, memory: string): PodResources {
  const amounts = { cpu, memory };
  return { containers: new Map([["c", { requests: amounts, limits: amounts }]]), pod: undefined };
}

function told(milliCpu: bigint, memoryLimit: bigint): ContainerResources {
  return { cpuRequest: milliCpu, cpuLimit: milliCpu, memoryLimit };
}

/** What is said of it when its cgroup holds that. */
function judge(resources: ContainerResources, record: PodResources, shares: number, quota: number, memory: number) {
  const status = runtimeStatus(testPod(), [runtimeContainer("c", { id: "c-0", resources })]);
  const held = {
    cpuShares: shares,
    cpuQuotaMicroseconds: quota,
    cpuPeriodMicroseconds: 100_000,
    memoryLimitBytes: memory,
  };
  const cgroup = { resources: held, memoryUsageBytes: 0 };
  return withCgroups(status, record, new Map([["c-0", cgroup]])).containers[0]?.resources;
}

test("the runtime's resources are in doubt only for running containers where they differ from the record", () => {
  const ids = (resources: ContainerResources | undefined, state: "running" | "exited" = "running"): string[] => {
    const status = runtimeStatus(testPod(), [runtimeContainer("c", { id: "c-0", resources, state })]);
    return disputed(recorded("300m", "128Mi"), status).map(({ id }) => id);
  };
  assert.deepEqual(ids(told(300n, 128n * mebibyte)), []);
  assert.deepEqual(ids(told(100n, 128n * mebibyte)), ["c-0"]);
  assert.deepEqual(ids(told(300n, 64n * mebibyte)), ["c-0"]);
  assert.deepEqual(ids(told(300n, 64n * mebibyte), "exited"), []);
  assert.deepEqual(ids(undefined), [], "the runtime tells nothing");
  const status = runtimeStatus(testPod(), [runtimeContainer("c", { resources: told(1n, 1n) })]);
  assert.deepEqual(disputed(undefined, status), [], "nothing was recorded");
});

test("the cgroup decides: for the record if the runtime has forgotten, for the runtime if the end was not recorded", () => {
  const record = recorded("300m", "128Mi");
  const forgotten = told(100n, 64n * mebibyte);
  assert.deepEqual(judge(forgotten, record, 307, 30_000, 128 << 20), told(300n, 128n * mebibyte));
  assert.deepEqual(judge(forgotten, record, 102, 10_000, 64 << 20), forgotten);
  assert.deepEqual(judge(forgotten, record, 102, 30_000, 128 << 20), {
    ...told(300n, 128n * mebibyte),
    cpuRequest: 100n,
  });
});

test("values rounded by the kernel count as equal, and foreign values are reported", () => {
  // A weight of cgroup v2 says a request only roughly.
  assert.equal(judge(told(100n, 0n), recorded("300m", "1G"), 290, -1, 999_997_440)?.cpuRequest, 300n);
  assert.equal(judge(told(100n, 0n), recorded("300m", "1G"), 307, 30_000, 999_997_440)?.memoryLimit, 1_000_000_000n);
  const others = judge(told(100n, 64n * mebibyte), recorded("300m", "128Mi"), 307, 70_000, 256 << 20);
  assert.deepEqual(others, { cpuRequest: 300n, cpuLimit: 700n, memoryLimit: 256n * mebibyte });
  const none = judge(told(100n, 64n * mebibyte), recorded("300m", "128Mi"), 307, -1, -1);
  assert.deepEqual(none, { cpuRequest: 300n, cpuLimit: undefined, memoryLimit: undefined });
});
