import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { testContainer } from "../../../test/support/observed.ts";
import type { Amounts, ContainerResize } from "../actions/resize-actions.ts";
import { limitsText, stepsFor } from "./resize-steps.ts";

function update(name: string, from: Partial<Amounts>, to: Partial<Amounts>): ContainerResize {
  const none: Amounts = { cpuRequest: 0n, cpuLimit: 0n, memoryRequest: 0n, memoryLimit: 0n };
  return { container: { name }, running: testContainer({ name }), from: { ...none, ...from }, to: { ...none, ...to } };
}

function told(steps: ReturnType<typeof stepsFor>): string[] {
  return steps.map((step) => ("container" in step ? step.container.name : Object.keys(step).join("+")));
}

const limits = (cpuShares: number, quota: number): Parameters<typeof stepsFor>[1] => ({
  cpuShares,
  cpuQuotaMicroseconds: quota,
  cpuPeriodMicroseconds: 100_000,
});

test("increases go from the pod's limit down, with decreases first among the containers", () => {
  const grows = update("grows", { cpuLimit: 100n }, { cpuLimit: 300n });
  const shrinks = update("shrinks", { cpuLimit: 300n }, { cpuLimit: 200n });
  assert.deepEqual(told(stepsFor("cpu", limits(100, 40_000), limits(200, 50_000), [grows, shrinks])), [
    "cpuQuotaMicroseconds+cpuPeriodMicroseconds",
    "cpuShares",
    "shrinks",
    "grows",
  ]);
});

test("decreases go from the containers up, the pod's limit last", () => {
  const shrinks = update("shrinks", { cpuLimit: 300n, cpuRequest: 200n }, { cpuLimit: 200n, cpuRequest: 100n });
  assert.deepEqual(told(stepsFor("cpu", limits(200, 30_000), limits(100, 20_000), [shrinks])), [
    "shrinks",
    "cpuShares",
    "cpuQuotaMicroseconds+cpuPeriodMicroseconds",
  ]);
});

test("a new limit is a decrease, and a container without changes of the resource is omitted", () => {
  const limited = update("limited", { memoryLimit: 0n }, { memoryLimit: 100n });
  const other = update("other", { cpuLimit: 1n }, { cpuLimit: 2n });
  const steps = stepsFor("memory", { memoryLimitBytes: -1 }, { memoryLimitBytes: 100 }, [limited, other]);
  assert.deepEqual(told(steps), ["limited", "memoryLimitBytes"]);
  assert.deepEqual(told(stepsFor("memory", { memoryLimitBytes: 100 }, {}, [])), []);
});

test("at no step do containers have more than their pod", () => {
  const amount = fc.integer({ min: 1, max: 50 });
  const sizes = fc.array(fc.record({ from: amount, to: amount }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(sizes, (containers) => {
      const updates = containers.map(({ from, to }, index) => {
        return update(`c${index}`, { memoryLimit: BigInt(from) }, { memoryLimit: BigInt(to) });
      });
      const sum = (which: "from" | "to"): number => containers.reduce((total, size) => total + size[which], 0);
      const now = new Map(updates.map(({ container, from }) => [container.name, Number(from.memoryLimit)]));
      let pod = sum("from");
      for (const step of stepsFor("memory", { memoryLimitBytes: pod }, { memoryLimitBytes: sum("to") }, updates)) {
        if ("container" in step) now.set(step.container.name, Number(step.to.memoryLimit));
        else pod = step.memoryLimitBytes ?? pod;
        const used = [...now.values()].reduce((total, size) => total + size, 0);
        assert.ok(used <= Math.max(pod, sum("from"), sum("to")));
        assert.ok(
          [...now.values()].every((size) => size <= pod),
          "a container has more than its pod",
        );
      }
      assert.equal(pod, sum("to"));
      assert.deepEqual(
        [...now.values()],
        containers.map(({ to }) => to),
      );
    }),
  );
});

test("limits are named with their units", () => {
  assert.equal(limitsText(limits(512, 20_000)), "CPU shares 512, CPU quota 20000 µs, CPU period 100000 µs");
  assert.equal(limitsText({ cpuQuotaMicroseconds: -1, memoryLimitBytes: -1 }), "no CPU quota, no memory limit");
  assert.equal(limitsText({ memoryLimitBytes: 1024 }), "memory limit 1024 bytes");
});
