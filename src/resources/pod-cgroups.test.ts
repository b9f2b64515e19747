import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { Pod } from "../api/pod.ts";
import type { JournalInput, Recorder } from "../journal/entry.ts";
import type { CgroupResources } from "../ports/cgroups.ts";
import { SimClock } from "../sim/clock.ts";
import { silentLog, SimCgroups, simProcesses } from "../sim/machine.ts";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { PodCgroups, raised } from "./pod-cgroups.ts";

const path = "/kubepods/burstable/podu";

function pod(cpu: string, memory: string): Pod {
  return podWith({ containers: [containerWith("a", { cpu: "100m" }, { cpu, memory })] });
}

/** A life of podwright on a machine's cgroups. */
function life(cgroups: SimCgroups, enforced = false, journal: Recorder = { record: () => 0 }): PodCgroups {
  const clock = new SimClock(0).incarnation();
  return new PodCgroups(
    { cgroups, processes: simProcesses, clock, journal, log: silentLog },
    {
      enforced,
      driver: "cgroupfs",
      cgroupRoot: "/",
      cpuQuota: true,
      cpuPeriodMicroseconds: 100_000n,
      podPidsLimit: -1,
      hugePageSizes: [],
      milliCpu: 4000n,
      memoryBytes: 8n << 30n,
    },
  );
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

test("another life brings a running pod's cgroup to what it should be, and counts the pod for its class", async () => {
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

test("a pod without a cgroup is left without", async () => {
  const machine = new SimCgroups();
  await life(machine).settle(pod("1", "1Gi"));
  assert.equal(machine.applied.has(path), false);
});

test("that all pods are held to node allocatable is told once, or why they are not", async () => {
  const told: JournalInput[] = [];
  const journal = { record: (input: JournalInput) => told.push(input) };
  const machine = new SimCgroups();
  const cgroups = life(machine, true, journal);
  await cgroups.ensure(pod("200m", "2Gi"));
  await cgroups.ensure(pod("300m", "2Gi"));
  const full = Object.assign(new SimCgroups(), { apply: () => Promise.reject(new Error("no space left")) });
  await assert.rejects(life(full, true, journal).ensure(pod("200m", "2Gi")), /no space left/);
  await life(new SimCgroups(), false, journal).ensure(pod("200m", "2Gi"));
  assert.deepEqual(
    told.map(({ what, message }) => `${what}: ${message}`),
    [
      "NodeAllocatableEnforced: Updated Node Allocatable limit across pods",
      'FailedNodeAllocatableEnforcement: Failed to update Node Allocatable Limits "/kubepods": no space left',
    ],
  );
});

test("no limit is more than any", () => {
  assert.deepEqual(raised({ memoryLimitBytes: -1 }, { memoryLimitBytes: 100 }), {});
  assert.deepEqual(raised({ memoryLimitBytes: 100 }, { memoryLimitBytes: -1 }), { memoryLimitBytes: -1 });
});

test("the class of burstable pods gets the sum of all, however many come at once and in whatever time it is written", async () => {
  class Slow extends SimCgroups {
    readonly written: (number | undefined)[] = [];
    readonly waiting: (() => void)[] = [];
    override async apply(at: string, resources: CgroupResources): Promise<void> {
      const isPart = at === "/kubepods/burstable" && resources.cpuShares !== 2;
      if (isPart) await new Promise<void>((resolve) => void this.waiting.push(resolve));
      if (isPart) this.written.push(resources.cpuShares);
      await super.apply(at, resources);
    }
  }
  const machine = new Slow();
  const cgroups = life(machine);
  const burstable = (uid: string): Pod => {
    const { metadata, spec } = pod("200m", "1Gi");
    return { metadata: { ...metadata, uid: podUid(uid) }, spec };
  };
  const first = cgroups.ensure(burstable("a"));
  await turns();
  const others = ["b", "c", "d"].map((uid) => cgroups.ensure(burstable(uid)));
  await turns();
  assert.equal(machine.waiting.length, 1, "one after the other");
  machine.waiting.shift()?.();
  await first;
  await turns();
  machine.waiting.shift()?.();
  await Promise.all(others);
  assert.deepEqual(machine.written, [102, 409]);
});

async function turns(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await Promise.resolve();
}

test("a pod whose class changes while it runs breaks an invariant: its containers stay where they are", async () => {
  const cgroups = life(new SimCgroups());
  await cgroups.ensure(pod("200m", "2Gi"));
  const amounts = { cpu: "200m", memory: "2Gi" };
  const guaranteed = podWith({ containers: [containerWith("a", amounts, amounts)] });
  await assert.rejects(cgroups.ensure(guaranteed), /a pod keeps its cgroup/);
});
