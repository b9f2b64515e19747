import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import type { CgroupResources, CgroupState } from "../ports/cgroups.ts";
import { SimClock } from "../sim/clock.ts";
import { silentLog, SimCgroups } from "../sim/machine.ts";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { QosCgroups, type QosCgroupsConfig } from "./qos-cgroups.ts";
import type { ClassRequests } from "./qos-resources.ts";

const gi = 2 ** 30;

function pod(cpu: string, memory: string): Pod {
  return podWith({ containers: [containerWith("a", { cpu: "100m", memory: "1Gi" }, { cpu, memory })] });
}

/** A machine that refuses a limit below the usage, like v1's kernel. */
class Used extends SimCgroups {
  used = 0;
  refuses = true;
  override async apply(path: string, resources: CgroupResources): Promise<void> {
    const { memoryLimitBytes, ...others } = resources;
    await super.apply(path, others);
    if (memoryLimitBytes === undefined) return;
    if (this.refuses && memoryLimitBytes < this.used) throw new Error("EBUSY: device or resource busy");
    await super.apply(path, { memoryLimitBytes });
  }
  override async read(path: string): Promise<CgroupState> {
    return { ...(await super.read(path)), memoryUsageBytes: this.used };
  }
}

function life(cgroups: SimCgroups, more: Partial<QosCgroupsConfig> = {}) {
  const clock = new SimClock(0);
  const told: string[] = [];
  const protections: ClassRequests[] = [];
  const classes = new QosCgroups(
    {
      cgroups,
      clock: clock.incarnation(),
      journal: { record: ({ what, message }) => told.push(`${what}: ${message}`) },
      log: { ...silentLog, warn: (message) => void told.push(message) },
      memoryProtected: (requests) => void protections.push(requests),
    },
    { driver: "cgroupfs", cgroupRoot: "/", enforced: true, milliCpu: 4000n, memoryBytes: 8n << 30n, ...more },
  );
  const end = new AbortController();
  return { clock, told, protections, classes, end, running: classes.run(end.signal) };
}

const enforced = "NodeAllocatableEnforced: Updated Node Allocatable limit across pods";

test("enforcement of node allocatable is reported once, and so is its failure", async () => {
  const { classes, told } = life(new SimCgroups());
  await classes.ensure();
  await classes.ensure();
  assert.deepEqual(told, [enforced]);
  const full = life(Object.assign(new SimCgroups(), { apply: () => Promise.reject(new Error("no space left")) }));
  await assert.rejects(full.classes.ensure(), /no space left/);
  assert.deepEqual(full.told, [
    'FailedNodeAllocatableEnforcement: Failed to update Node Allocatable Limits "/kubepods": no space left',
  ]);
  const free = life(new SimCgroups(), { enforced: false });
  await free.classes.ensure();
  assert.deepEqual(free.told, []);
});

test("all pods are limited before there is one, and classes of an earlier run keep their values until then", async () => {
  const machine = new SimCgroups();
  const first = life(machine);
  await first.clock.run(0);
  assert.deepEqual([...machine.applied.keys()], ["/kubepods", "/kubepods/burstable", "/kubepods/besteffort"]);
  assert.equal(machine.applied.get("/kubepods")?.memoryLimitBytes, 8 * gi);
  await first.classes.count(pod("200m", "1Gi"));
  assert.deepEqual(first.told, [enforced], "and not again with the first pod");
  machine.loosen();
  await machine.apply("/kubepods/burstable", { cpuShares: 102 });
  const second = life(machine, { memoryBytes: 4n << 30n });
  await second.clock.run(0);
  assert.deepEqual(second.told, [enforced]);
  assert.equal(machine.applied.get("/kubepods")?.memoryLimitBytes, 4 * gi);
  assert.equal(machine.applied.get("/kubepods/burstable")?.cpuShares, 102);
  await second.classes.ensure();
  await second.classes.count(pod("400m", "1Gi"));
  assert.deepEqual(second.told, [enforced]);
  for (const { end, running } of [first, second]) {
    end.abort();
    await running;
  }
});

test("a tree that cannot be created at the start is created a minute later", async () => {
  class Full extends SimCgroups {
    isFull = true;
    override async apply(path: string, resources: CgroupResources): Promise<void> {
      if (this.isFull) throw new Error("no space left");
      await super.apply(path, resources);
    }
  }
  const machine = new Full();
  const { clock, told, end, running } = life(machine);
  await clock.run(0);
  const refusal =
    'FailedNodeAllocatableEnforcement: Failed to update Node Allocatable Limits "/kubepods": no space left';
  assert.deepEqual(told, [refusal, "cannot limit the cgroups of all pods"]);
  machine.isFull = false;
  await clock.run(61_000);
  assert.deepEqual(told.slice(2), [enforced]);
  assert.equal(machine.applied.get("/kubepods/besteffort")?.cpuShares, 2);
  end.abort();
  await running;
});

test("a limit below the usage is a warning, is refused by the kernel, and is retried each minute while pods run", async () => {
  const machine = new Used();
  await machine.apply("/kubepods", {});
  machine.used = 9 * gi;
  const { classes, clock, told, end, running } = life(machine);
  await classes.ensure();
  const refusal =
    'FailedNodeAllocatableEnforcement: Failed to update Node Allocatable Limits "/kubepods": EBUSY: device or resource busy';
  const warning = "memory limit of a cgroup is below its usage";
  assert.deepEqual(told, [warning, refusal]);
  assert.equal(machine.applied.get("/kubepods/besteffort")?.cpuShares, 2, "the classes are there");
  await clock.run(59_000);
  assert.equal(told.length, 2);
  await clock.run(61_000);
  assert.deepEqual(told.slice(2), [warning, refusal]);
  machine.used = gi;
  await clock.run(121_000);
  assert.deepEqual(told.slice(4), [enforced]);
  assert.equal(machine.applied.get("/kubepods")?.memoryLimitBytes, 8 * gi);
  await clock.run(1_000_000);
  assert.equal(told.length, 5, "then there is nothing to try again");
  end.abort();
  await running;
});

test("a class above its qosReserved limit gets no more memory, and a lower limit when its usage falls", async () => {
  const machine = new Used();
  const { classes, clock, end, running } = life(machine, {
    reservedMemory: { percent: 100, allocatableBytes: 8n << 30n },
  });
  await classes.ensure();
  machine.used = 7.5 * gi;
  await classes.count(pod("200m", "2Gi"));
  assert.equal(machine.applied.get("/kubepods/burstable")?.memoryLimitBytes, 8 * gi);
  assert.equal(machine.applied.get("/kubepods/besteffort")?.memoryLimitBytes, 7.5 * gi);
  machine.used = gi;
  await clock.run(61_000);
  assert.equal(machine.applied.get("/kubepods/besteffort")?.memoryLimitBytes, 7 * gi);
  await classes.forget(podUid("u"));
  assert.equal(machine.applied.get("/kubepods/besteffort")?.memoryLimitBytes, 8 * gi);
  end.abort();
  await running;
});

test("memory protection is the sum of the requests of guaranteed and burstable pods", async () => {
  const machine = new SimCgroups();
  const { classes, protections } = life(machine, { memoryQos: { policy: "TieredReservation", throttlingFactor: 0.9 } });
  await classes.ensure();
  const amounts = { cpu: "1", memory: "1Gi" };
  await classes.count(podWith({ containers: [containerWith("a", amounts, amounts)] }));
  assert.equal(machine.applied.get("/kubepods")?.memoryMinBytes, gi);
  assert.equal(machine.applied.get("/kubepods")?.memoryLimitBytes, 8 * gi, "limits stay");
  assert.equal(machine.applied.get("/kubepods/burstable")?.memoryLowBytes, 0);
  assert.deepEqual(protections, [{ burstableMilliCpu: 0n, guaranteedBytes: 1n << 30n, burstableBytes: 0n }]);
});

test("protection that an earlier run left ends with its last pod, or before the first one of this run", async () => {
  const memoryQos = { policy: "TieredReservation", throttlingFactor: 0.9 } as const;
  for (const isGone of [true, false]) {
    const machine = new SimCgroups();
    const earlier = life(machine, { memoryQos });
    await earlier.classes.ensure();
    await earlier.classes.count(pod("200m", "1Gi"));
    assert.equal(machine.applied.get("/kubepods")?.memoryMinBytes, gi);
    const { classes } = life(machine, { memoryQos });
    await (isGone ? classes.forget(podUid("u")) : classes.ensure());
    assert.equal(machine.applied.get("/kubepods")?.memoryMinBytes, 0);
    assert.equal(machine.applied.get("/kubepods/burstable")?.memoryLowBytes, 0);
    assert.equal(machine.applied.get("/kubepods/burstable")?.cpuShares, 2);
  }
});

test("the burstable class gets the sum of its pods, however many arrive at once and however long writes take", async () => {
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
  const { classes } = life(machine);
  const burstable = (uid: string): Pod => {
    const { metadata, spec } = pod("200m", "1Gi");
    return { metadata: { ...metadata, uid: podUid(uid) }, spec };
  };
  const first = classes.count(burstable("a"));
  await turns();
  const others = ["b", "c", "d"].map((uid) => classes.count(burstable(uid)));
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
