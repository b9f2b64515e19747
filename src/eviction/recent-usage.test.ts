import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/eviction.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { PodUsage, PodUsageReader } from "./pod-usage.ts";
import { RecentUsage } from "./recent-usage.ts";

test("figures of volumes have the time of their walk, however often they are read", async () => {
  const clock = new ManualClock();
  const volumes = [{ name: "data", isLocal: true, bytes: 10 << 20, inodes: 1 }];
  const own: PodUsage = { containers: [], volumes, volumesMs: clock.monotonic() };
  const usage: PodUsageReader = {
    readRunning: async () => new Map(),
    readStorage: async () => new Map([["uid-web", own]]),
    layersLeft: async () => ({ there: [], unknown: [] }),
    onMeasured: () => ({ [Symbol.dispose]: () => {} }),
  };
  const recent = new RecentUsage({ clock, usage, signals: () => [], fileSystems: () => "one" });
  for (let look = 0; look < 3; look++) {
    await clock.advance(10_000);
    await recent.watch("nodefs.available", [podWith("web")], new AbortController().signal);
  }
  assert.equal(recent.text("nodefs.available", "uid-web"), "recent usage: 10Mi 30 s ago");
});
