import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefaults } from "../config/defaults.ts";
import type { PartialConfiguration } from "../config/schema.ts";
import { kubeletSettings } from "../config/settings.ts";
import type { KubeletConfig } from "../kubelet.ts";
import { defaultPodIds } from "../runtime/id-ranges.ts";
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
};
const node = {
  nodeName: "node1",
  rootDirectory: "/var/lib/kubelet",
  hostIPs: ["192.0.2.1"],
  podIds: defaultPodIds(65_536),
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

test("the runtime's cgroup driver comes before the configured one, which is used when the runtime can't say", () => {
  for (const part of ["node", "cgroups"] as const) {
    const driverOf = (config: KubeletConfig): string =>
      part === "node" ? config.node.cgroupDriver : config.cgroups.driver;
    assert.equal(driverOf(configOf({ cgroupDriver: "cgroupfs" }, { cgroupDriver: "systemd" })), "systemd");
    assert.equal(driverOf(configOf({ cgroupDriver: "systemd" })), "systemd");
  }
});

test("processes of a container are killed one by one on cgroup v1, together on v2 unless told otherwise", () => {
  assert.equal(configOf({}, { cgroupVersion: 1 }).node.resources.singleProcessOomKill, true);
  assert.equal(configOf({}).node.resources.singleProcessOomKill, false);
  assert.equal(configOf({ singleProcessOOMKill: true }).node.resources.singleProcessOomKill, true);
});

test("a worker waits for a fresh look longer than a call of the runtime may take", () => {
  const config = configOf({ runtimeRequestTimeout: "10m" });
  assert.ok(config.worker.observeLimitMs > config.runtimeRequestTimeoutMs);
  assert.equal(config.runtimeRequestTimeoutMs, 600_000);
});
