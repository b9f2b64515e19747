import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/eviction.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { Evictor } from "./evictor.ts";
import { LimitEvictions } from "./limit-evictions.ts";
import type { PodUsage } from "./pod-usage.ts";

const limits = { "ephemeral-storage": "1Mi" };
const container = { name: "c", image: "busybox", resources: { limits } };
const pods = ["over", "was-over", "within"].map((name) => podWith(name, {}, { containers: [container] }));
const status = { sandboxes: [{ ready: true }], containers: [] } as unknown as PodStatus;
const uses = (ephemeralBytes: number): PodUsage => ({ containers: [], volumes: [], ephemeralBytes });
const over = 2 << 20;

test("a pod that seems to exceed its limit is measured again before it is evicted", async () => {
  const evictor = new Evictor({ clock: new ManualClock(), journal: new MemoryRecorder(), log: silentLog }, 0);
  const killed: string[] = [];
  evictor.connect({
    pods: {
      list: () =>
        [...pods, podWith("unlimited")].map((pod) => ({
          view: { ref: podRef(pod), pod, state: { kind: "syncing" }, status },
        })),
    },
    killer: {
      kill: async ({ metadata }) => {
        killed.push(metadata.name);
        return true;
      },
    },
    startUp: { has: () => true },
  });
  const asked: string[][] = [];
  const stored = new Map([
    ["uid-over", over],
    ["uid-was-over", over],
    ["uid-within", 1],
  ]);
  const now = new Map([...stored, ["uid-was-over", 1]] as const);
  const usage = {
    readStorage: async (of: typeof pods, how: string) => {
      asked.push([how, ...of.map(({ metadata }) => metadata.name)]);
      return new Map([...(how === "anew" ? now : stored)].map(([uid, bytes]) => [uid, uses(bytes)]));
    },
  };
  const accepted = { changeOfLimits: undefined };
  const evictions = new LimitEvictions({ usage, evictor, accepted, reports: { tell: () => true } });
  assert.equal(await evictions.enforce(async () => "one", new AbortController().signal), true);
  assert.deepEqual(asked, [
    ["limits", "over", "was-over", "within"],
    ["anew", "over", "was-over"],
  ]);
  assert.deepEqual(killed, ["over"]);
});
