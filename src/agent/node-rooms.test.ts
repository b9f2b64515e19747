import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { withDefaults } from "../config/defaults.ts";
import { kubeletSettings } from "../config/settings.ts";
import { UtilityChains } from "../firewall/utility-chains.ts";
import { NodeMetrics } from "../metrics/node-metrics.ts";
import { ShutdownManager } from "../shutdown/shutdown-manager.ts";
import { usualConfig } from "../sim/life/node-config.ts";
import { silentLog } from "../sim/machine.ts";
import { nodeRooms } from "./node-rooms.ts";
import { openPorts } from "./process-start.ts";

test("a node has iptables chains unless it is told not to, and waits for shutdowns only if pods get time in one", async () => {
  const ports = await openPorts();
  const roomsOf = (configuration: Parameters<typeof withDefaults>[0]): readonly unknown[] => {
    const settings = kubeletSettings(withDefaults(configuration));
    const prepared = {
      settings,
      rootDirectory: "/nowhere",
      nodeName: "node1",
      metrics: new NodeMetrics(new ManualClock()),
    };
    return nodeRooms({ ports, log: silentLog }, prepared, usualConfig, { record: () => 0 }, undefined);
  };
  const has = (rooms: readonly unknown[]): readonly boolean[] =>
    [UtilityChains, ShutdownManager].map((kind) => rooms.some((room) => room instanceof kind));
  assert.deepEqual(has(roomsOf({})), [true, false]);
  assert.deepEqual(has(roomsOf({ makeIPTablesUtilChains: false })), [false, false]);
  assert.deepEqual(has(roomsOf({ shutdownGracePeriod: "30s" })), [true, true]);
  const byPriority = [{ priority: 0, shutdownGracePeriodSeconds: 5 }];
  assert.deepEqual(has(roomsOf({ shutdownGracePeriodByPodPriority: byPriority })), [true, true]);
});
