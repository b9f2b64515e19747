import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog, SimCgroups } from "../sim/machine.ts";
import { limitReservedCgroups, type ReservedCgroup, reservedLimits } from "./reserved-cgroups.ts";

const mi = 2 ** 20;
const system: ReservedCgroup = {
  kind: "System",
  cgroup: "/system",
  reserved: { cpu: "500m", memory: "100Mi", "ephemeral-storage": "1Gi", pid: "1000" },
  onlyCompressible: false,
};

async function limit(cgroups: SimCgroups, all: readonly ReservedCgroup[], driver: "cgroupfs" | "systemd" = "cgroupfs") {
  const told: string[] = [];
  const journal = {
    record: ({ what, message }: { what: string; message: string }) => told.push(`${what}: ${message}`),
  };
  const log = { ...silentLog, warn: (message: string) => void told.push(message) };
  const config = { cgroups: all, driver, kubepods: "/kubepods", protectsMemory: false };
  const error: unknown = await limitReservedCgroups({ cgroups, journal, log }, config).catch((each: unknown) => each);
  return { told, error };
}

test("a reserved cgroup is limited to its reservation, or only in its CPU weight", () => {
  const limits = { cpuShares: 512, memoryLimitBytes: 100 * mi, pidsLimit: 1000 };
  assert.deepEqual(reservedLimits(system, false), limits);
  assert.deepEqual(reservedLimits(system, true), { ...limits, memoryMinBytes: 100 * mi });
  assert.deepEqual(reservedLimits({ ...system, onlyCompressible: true }, true), { cpuShares: 512 });
  assert.deepEqual(reservedLimits({ ...system, reserved: { memory: "1" } }, false), { memoryLimitBytes: 1 });
  const nothing = { ...system, reserved: { cpu: "0", memory: "0", pid: "0" } };
  assert.deepEqual(reservedLimits(nothing, true), { cpuShares: 2 }, "a limit of 0 would stop the whole system");
});

test("limits are set in order and reported in upstream's words, with either cgroup driver", async () => {
  const machine = new SimCgroups();
  await machine.apply("/system", {});
  await machine.apply("/kube.slice/kube-reserved.slice", {});
  const kube = { ...system, kind: "Kube", cgroup: "/kube.slice/kube-reserved.slice", onlyCompressible: true } as const;
  assert.deepEqual((await limit(machine, [system])).told, [
    "NodeAllocatableEnforced: Updated limits on system reserved cgroup /system",
  ]);
  assert.equal(machine.applied.get("/system")?.pidsLimit, 1000);
  const { told, error } = await limit(machine, [kube], "systemd");
  assert.equal(error, undefined);
  assert.deepEqual(told, [
    "NodeAllocatableEnforced: Updated limits on kube reserved cgroup /kube.slice/kube-reserved.slice",
  ]);
  assert.deepEqual(machine.applied.get("/kube.slice/kube-reserved.slice"), { cpuShares: 512 });
});

test("the cgroup of all pods is created first: with it a reserved one has its controllers", async () => {
  class Bare extends SimCgroups {
    override async missing(): Promise<string[]> {
      return (await this.exists("/kubepods")) ? [] : ["cpuset", "hugetlb"];
    }
  }
  const machine = new Bare();
  await machine.apply("/system", {});
  const { error } = await limit(machine, [system]);
  assert.equal(error, undefined);
  assert.equal(machine.applied.get("/system")?.pidsLimit, 1000);
  const other = new Bare();
  await limit(other, []);
  assert.deepEqual([...other.applied.keys()], [], "nothing needs it here");
});

test("a missing cgroup or controller, an empty reservation and a rejected limit prevent the start, with a remedy", async () => {
  const there = async (more: object): Promise<SimCgroups> => {
    const machine = new SimCgroups();
    await machine.apply("/system", {});
    return Object.assign(machine, more);
  };
  const failed = 'Failed to enforce System Reserved Cgroup Limits on "/system": ';
  const cases: readonly (readonly [SimCgroups, ReservedCgroup, string])[] = [
    [
      await there({ missing: async () => ["cpuset"] }),
      system,
      `${failed}cgroup ["system"] has some missing controllers: cpuset`,
    ],
    [
      await there({ version: 1, missing: async () => ["/c/memory/system"] }),
      system,
      `${failed}cgroup ["system"] has some missing paths: /c/memory/system`,
    ],
    [
      await there({ missing: () => Promise.reject(new Error("ENOENT: no such file")) }),
      system,
      `${failed}could not read controllers for cgroup ["system"]: ENOENT: no such file`,
    ],
    [await there({ apply: () => Promise.reject(new Error("EBUSY: busy")) }), system, `${failed}EBUSY: busy`],
    [await there({}), { ...system, reserved: {} }, `${failed}["system"] cgroup is not configured properly`],
  ];
  for (const [machine, cgroup, message] of cases) {
    const { told, error } = await limit(machine, [cgroup]);
    assert.deepEqual(told, [`FailedNodeAllocatableEnforcement: ${message}`]);
    assert.ok(error instanceof Error && error.message === message, String(error));
    assert.ok("remedy" in error && String(error.remedy).includes("enforceNodeAllocatable"));
  }
});

test("a limit below the usage causes a warning before it is set, and may be rejected", async () => {
  const machine = new SimCgroups();
  await machine.apply("/system", {});
  const { told } = await limit(machine, [{ ...system, reserved: { memory: "1Ki" } }]);
  assert.equal(told[0], "memory limit of a cgroup is below its usage");
  assert.match(told[1] ?? "", /^FailedNodeAllocatableEnforcement: .*EBUSY/);
});
