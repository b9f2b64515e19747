import assert from "node:assert/strict";
import { test } from "node:test";
import { configurationInUse } from "./configuration-in-use.ts";
import { withDefaults } from "./defaults.ts";
import type { PartialConfiguration } from "./schema.ts";
import { shownFlags } from "./shown-flags.ts";

test("the cgroup driver in use is shown, not the configured one", () => {
  const configured = withDefaults({ maxPods: 7 });
  const inUse = configurationInUse(configured, { cgroupDriver: "systemd" });
  assert.deepEqual(inUse, { ...configured, cgroupDriver: "systemd" });
  assert.equal(shownFlags(inUse, {}).get("cgroup-driver"), "systemd");
  const other = configurationInUse(withDefaults({ cgroupDriver: "systemd" }), { cgroupDriver: "cgroupfs" });
  assert.equal(other.cgroupDriver, "cgroupfs");
});

test("reservedSystemCPUs has replaced the reserved amounts of CPU", () => {
  const shown = (given: PartialConfiguration) => {
    const { kubeReserved, systemReserved } = configurationInUse(withDefaults(given), { cgroupDriver: "cgroupfs" });
    return [kubeReserved, systemReserved];
  };
  const reserved = { kubeReserved: { cpu: "1", memory: "1Gi" }, systemReserved: { cpu: "500m", pid: "100" } };
  assert.deepEqual(shown(reserved), [reserved.kubeReserved, reserved.systemReserved]);
  const replaced = shown({ ...reserved, reservedSystemCPUs: "0,2-3" });
  assert.deepEqual(replaced, [{ memory: "1Gi" }, { cpu: "3", pid: "100" }]);
  assert.deepEqual(shown({ kubeReserved: { cpu: "1" }, reservedSystemCPUs: "0" }), [undefined, undefined]);
});

test("the files of the self-signed serving certificate are shown, unless it comes from elsewhere", () => {
  const shown = (given: PartialConfiguration) => {
    const found = { cgroupDriver: "cgroupfs", certificateDirectory: "/var/lib/kubelet/pki" } as const;
    const { tlsCertFile, tlsPrivateKeyFile } = configurationInUse(withDefaults(given), found);
    return [tlsCertFile, tlsPrivateKeyFile];
  };
  assert.deepEqual(shown({}), ["/var/lib/kubelet/pki/kubelet.crt", "/var/lib/kubelet/pki/kubelet.key"]);
  assert.deepEqual(shown({ serverTLSBootstrap: true }), [undefined, undefined]);
  assert.deepEqual(shown({ tlsCertFile: "/c.crt", tlsPrivateKeyFile: "/c.key" }), ["/c.crt", "/c.key"]);
});
