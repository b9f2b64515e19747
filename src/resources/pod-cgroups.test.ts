import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../api/pod.ts";
import { SimClock } from "../sim/clock.ts";
import { silentLog, SimCgroups, simProcesses } from "../sim/machine.ts";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { PodCgroups, raised } from "./pod-cgroups.ts";
import { QosCgroups } from "./qos-cgroups.ts";

const path = "/kubepods/burstable/podu";

function pod(cpu: string, memory: string): Pod {
  return podWith({ containers: [containerWith("a", { cpu: "100m" }, { cpu, memory })] });
}

/** A run of podwright on a machine's cgroups. */
function life(cgroups: SimCgroups): PodCgroups {
  const clock = new SimClock(0).incarnation();
  const config = {
    enforced: false,
    driver: "cgroupfs",
    cgroupRoot: "/",
    cpuQuota: true,
    cpuPeriodMicroseconds: 100_000n,
    podPidsLimit: -1,
    hugePageSizes: [],
    milliCpu: 4000n,
    memoryBytes: 8n << 30n,
  } as const;
  const classes = new QosCgroups({ cgroups, clock, journal: { record: () => 0 }, log: silentLog }, config);
  return new PodCgroups({ cgroups, classes, processes: simProcesses, clock, log: silentLog }, config);
}

test("raising lowers nothing", async () => {
  const machine = new SimCgroups();
  const cgroups = life(machine);
  await cgroups.ensure(pod("200m", "2Gi"));
  await cgroups.raise(pod("300m", "1Gi"));
  const { cpuQuotaMicroseconds, memoryLimitBytes } = machine.applied.get(path) ?? {};
  assert.deepEqual([cpuQuotaMicroseconds, memoryLimitBytes], [30_000, 2 ** 31]);
  await cgroups.settle(pod("300m", "1Gi"));
  assert.equal(machine.applied.get(path)?.memoryLimitBytes, 2 ** 30);
});

test("the next run corrects a running pod's cgroup, and counts the pod for its class", async () => {
  const machine = new SimCgroups();
  await life(machine).ensure(pod("200m", "2Gi"));
  const cgroups = life(machine);
  await cgroups.settle(pod("400m", "2Gi"));
  assert.equal(machine.applied.get(path)?.cpuQuotaMicroseconds, 40_000);
  assert.equal(machine.applied.get("/kubepods/burstable")?.cpuShares, 102);
  machine.applied.set(path, {});
  await cgroups.settle(pod("400m", "2Gi"));
  assert.deepEqual(machine.applied.get(path), {}, "it is known to be right, and not looked at again");
});

test("settling takes no memory away that the pod uses, until it uses less", async () => {
  const machine = new SimCgroups();
  const cgroups = life(machine);
  await cgroups.ensure(pod("200m", "2Gi"));
  machine.use(path, 2 ** 30);
  const had = (): unknown => {
    const { cpuQuotaMicroseconds, memoryLimitBytes } = machine.applied.get(path) ?? {};
    return [cpuQuotaMicroseconds, memoryLimitBytes];
  };
  await cgroups.settle(pod("100m", "1Gi"));
  assert.deepEqual(had(), [10_000, 2 ** 31]);
  await cgroups.settle(pod("100m", "1Gi"));
  assert.deepEqual(had(), [10_000, 2 ** 31]);
  machine.use(path, 2 ** 29);
  await cgroups.settle(pod("100m", "1Gi"));
  assert.deepEqual(had(), [10_000, 2 ** 30]);
});

test("settling creates no missing cgroup", async () => {
  const machine = new SimCgroups();
  await life(machine).settle(pod("1", "1Gi"));
  assert.equal(machine.applied.has(path), false);
});

test("no limit is higher than any limit", () => {
  assert.deepEqual(raised({ memoryLimitBytes: -1 }, { memoryLimitBytes: 100 }), {});
  assert.deepEqual(raised({ memoryLimitBytes: 100 }, { memoryLimitBytes: -1 }), { memoryLimitBytes: -1 });
});

test("a running pod whose class changes violates an invariant: its containers stay in the old cgroup", async () => {
  const cgroups = life(new SimCgroups());
  await cgroups.ensure(pod("200m", "2Gi"));
  const amounts = { cpu: "200m", memory: "2Gi" };
  const guaranteed = podWith({ containers: [containerWith("a", amounts, amounts)] });
  await assert.rejects(cgroups.ensure(guaranteed), /a pod keeps its cgroup/);
});
