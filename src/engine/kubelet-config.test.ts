import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefaults } from "../config/defaults.ts";
import type { PartialConfiguration } from "../config/schema.ts";
import { kubeletSettings } from "../config/settings.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import { defaultPodIds } from "../runtime/config/id-ranges.ts";
import { kubeletConfig } from "./kubelet-config.ts";
import type { MachineInfo } from "./machine.ts";

const machine: MachineInfo = {
  processors: 4,
  memoryBytes: 8n << 30n,
  cgroupVersion: 2,
  hugePageSizes: [],
  hugePages: new Map(),
  swapBytes: 0n,
  pids: 32_768n,
  swapAccounting: true,
  kernelRelease: "6.8.0",
  appArmor: true,
  seLinux: false,
  maskedPaths: [],
  pageBytes: 4096,
};
const node = {
  nodeName: "node1",
  rootDirectory: "/var/lib/kubelet",
  hostIPs: ["192.0.2.1"],
  podIds: defaultPodIds(65_536),
  credentialFiles: [],
};

function configOf(
  given: PartialConfiguration,
  { cgroupVersion = 2, cgroupDriver }: { cgroupVersion?: 1 | 2; cgroupDriver?: "systemd" | "cgroupfs" } = {},
): KubeletConfig {
  const settings = kubeletSettings(withDefaults(given));
  return kubeletConfig(
    node,
    settings,
    { ...machine, cgroupVersion },
    {
      name: "containerd",
      cgroupDriver,
      supplementalGroupsPolicy: true,
    },
  );
}

test("the runtime's cgroup driver overrides the configured one, which is used if the runtime reports none", () => {
  for (const part of ["node", "cgroups"] as const) {
    const driverOf = (config: KubeletConfig): string =>
      part === "node" ? config.node.cgroupDriver : config.cgroups.driver;
    assert.equal(driverOf(configOf({ cgroupDriver: "cgroupfs" }, { cgroupDriver: "systemd" })), "systemd");
    assert.equal(driverOf(configOf({ cgroupDriver: "systemd" })), "systemd");
  }
});

test("processes of a container are killed one by one on cgroup v1, together on v2 unless configured otherwise", () => {
  assert.equal(configOf({}, { cgroupVersion: 1 }).node.resources.singleProcessOomKill, true);
  assert.equal(configOf({}).node.resources.singleProcessOomKill, false);
  assert.equal(configOf({ singleProcessOOMKill: true }).node.resources.singleProcessOomKill, true);
});

test("a worker waits longer for a fresh relist than a runtime call may take", () => {
  const config = configOf({ runtimeRequestTimeout: "10m" });
  assert.ok(config.worker.observeLimitMs > 600_000);
});

test("pods may request what is neither reserved nor kept free by hard eviction thresholds", () => {
  const given = {
    kubeReserved: { memory: "1Gi", "ephemeral-storage": "10Gi" },
    evictionHard: { "memory.available": "1Gi", "nodefs.available": "50%" },
  };
  const disk = { ...machine, ephemeralStorageBytes: 100n << 30n };
  const allocatable = (more: PartialConfiguration, ignoresEviction = false): Readonly<Record<string, unknown>> => {
    const settings = kubeletSettings(withDefaults({ ...given, ...more }), {
      experimentalAllocatableIgnoreEviction: ignoresEviction,
    });
    const runtime = { name: "containerd", cgroupDriver: undefined, supplementalGroupsPolicy: true };
    return kubeletConfig(node, settings, disk, runtime).node.resources.allocatable;
  };
  const usual = { cpu: "4", pods: "110" };
  assert.deepEqual(allocatable({}), { ...usual, memory: "6Gi", "ephemeral-storage": "40Gi" });
  assert.deepEqual(allocatable({}, true), { ...usual, memory: "7Gi", "ephemeral-storage": "90Gi" });
  assert.deepEqual(allocatable({ localStorageCapacityIsolation: false }), { ...usual, memory: "6Gi" });
});

test("a reservation above the capacity, or an invalid threshold, prevents the kubelet's start", () => {
  assert.throws(() => configOf({ systemReserved: { memory: "9Gi" } }), {
    message:
      'invalid Node Allocatable configuration. Resource "memory" has a reservation of 9Gi but capacity of 8Gi. ' +
      "Expected capacity >= reservation.",
    remedy: "lower memory in kubeReserved and systemReserved, or memory.available in evictionHard",
  });
  assert.throws(() => kubeletSettings(withDefaults({ evictionHard: { "memory.free": "1Gi" } })), {
    message: "invalid configuration: eviction: unsupported eviction signal memory.free",
  });
});
