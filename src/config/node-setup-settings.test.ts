import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefaults } from "./defaults.ts";
import { machineWarnings } from "./machine-warnings.ts";
import type { PartialConfiguration } from "./schema.ts";
import { kubeletSettings } from "./settings.ts";

const settings = (given: PartialConfiguration) => kubeletSettings(withDefaults(given));

test("reserved cgroups are in upstream's order, each with its list", () => {
  const { reservedCgroups } = settings({
    enforceNodeAllocatable: ["kube-reserved-compressible", "pods", "system-reserved"],
    systemReserved: { cpu: "1" },
    kubeReserved: { memory: "1Gi" },
    systemReservedCgroup: "/system",
    kubeReservedCgroup: "/kube",
  }).nodeSetup;
  assert.deepEqual(reservedCgroups, [
    { kind: "System", cgroup: "/system", reserved: { cpu: "1" }, onlyCompressible: false },
    { kind: "Kube", cgroup: "/kube", reserved: { memory: "1Gi" }, onlyCompressible: true },
  ]);
  assert.deepEqual(settings({}).nodeSetup.reservedCgroups, []);
});

test("processes are moved to cgroups below the root", () => {
  const { systemCgroups, kubeletCgroups } = settings({ systemCgroups: "system/", kubeletCgroups: "/a//b" }).nodeSetup;
  assert.deepEqual([systemCgroups, kubeletCgroups], ["/system", "/a/b"]);
  assert.throws(() => settings({ systemCgroups: "/" }), /system container cannot be root \("\/"\)/);
  assert.throws(() => settings({ kubeletCgroups: "/a/../b" }), /must be a plain path/);
});

test("without cgroupsPerQOS pods have no cgroups", () => {
  assert.equal(settings({ cgroupsPerQOS: false, enforceNodeAllocatable: [] }).cgroupRoot, undefined);
});

test("memory is protected and reserved for better classes only behind feature gates", () => {
  const given = {
    memoryReservationPolicy: "TieredReservation",
    memoryThrottlingFactor: 0.5,
    qosReserved: { memory: "50%" },
  };
  assert.deepEqual([settings(given).memoryQos, settings(given).qosReservedMemoryPercent], [undefined, undefined]);
  const on = settings({ ...given, featureGates: { MemoryQoS: true, QOSReserved: true } });
  assert.deepEqual(on.memoryQos, { policy: "TieredReservation", throttlingFactor: 0.5 });
  assert.equal(on.qosReservedMemoryPercent, 50);
});

test("settings without effect on this machine are warnings", () => {
  const qos = withDefaults({ featureGates: { MemoryQoS: true } });
  assert.deepEqual(machineWarnings(qos, 1, "6.8.0"), ["MemoryQoS has no effect on cgroup v1"]);
  assert.deepEqual(machineWarnings(qos, 2, "5.8.0-1"), ["MemoryQoS may cause livelocks with kernels before 5.9"]);
  assert.deepEqual(machineWarnings(qos, 2, "5.10.0"), []);
  const others = withDefaults({ qosReserved: { memory: "1%" }, kubeReservedCgroup: "/kube", kubeletCgroups: "/other" });
  assert.deepEqual(machineWarnings(others, 2, "6.8.0"), [
    "qosReserved has no effect without the feature gate QOSReserved",
    "kubeletCgroups is not within kubeReservedCgroup",
  ]);
});
