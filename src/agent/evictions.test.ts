import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeFlagValues } from "../config/flags.ts";
import { withDefaults } from "../config/defaults.ts";
import { kubeletSettings } from "../config/settings.ts";
import { evictionSettings } from "./evictions.ts";

const fields = (kernelMemcgNotification: boolean): Parameters<typeof evictionSettings>[0] =>
  kubeletSettings(withDefaults({ kernelMemcgNotification })).eviction;

test("kernelMemcgNotification observes memory each second on cgroup v1, and changes nothing on v2", () => {
  const watches = (isOn: boolean, version: 1 | 2): boolean => evictionSettings(fields(isOn), version, {}).watchesMemory;
  assert.deepEqual([watches(true, 1), watches(true, 2), watches(false, 1)], [true, false, false]);
});

test("podwright's own flags choose the figure of memory, and whether changed evictions wait", () => {
  const of = (flags: NodeFlagValues): readonly boolean[] => {
    const { eviction } = kubeletSettings(withDefaults({}), flags);
    const { asks, countsMemAvailable } = evictionSettings(eviction, 2, flags);
    return [asks, countsMemAvailable];
  };
  assert.deepEqual(of({}), [false, false]);
  assert.deepEqual(of({ confirmEvictions: true, evictionMemory: "MemAvailable" }), [true, true]);
  assert.throws(() => of({ evictionMemory: "most" }), /invalid --eviction-memory "most"/u);
});
