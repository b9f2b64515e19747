import assert from "node:assert/strict";
import { test } from "node:test";
import { configurationInUse } from "./configuration-in-use.ts";
import { withDefaults } from "./defaults.ts";
import { shownConfiguration, shownFlags } from "./shown-flags.ts";

test("the cgroup driver in use is shown, not the configured one", () => {
  const configured = withDefaults({ maxPods: 7 });
  const inUse = configurationInUse(configured, { cgroupDriver: "systemd" });
  assert.deepEqual(shownConfiguration(inUse), { ...shownConfiguration(configured), cgroupDriver: "systemd" });
  assert.equal(shownFlags(inUse, {}).get("cgroup-driver"), "systemd");
  const other = configurationInUse(withDefaults({ cgroupDriver: "systemd" }), { cgroupDriver: "cgroupfs" });
  assert.equal(other.cgroupDriver, "cgroupfs");
});
