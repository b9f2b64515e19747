import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/eviction.ts";
import { EvictionScene } from "../../test/support/eviction-scene.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import type { Pod } from "../api/pod.ts";
import { unwanted } from "../pods/ending.ts";
import type { WorkerState } from "../pods/worker-state.ts";
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

/** An evictor that knows these pods, and the names of those that it evicted. */
function evictorOf(
  clock: ManualClock,
  known: readonly Pod[],
  states: ReadonlyMap<string, WorkerState> = new Map(),
): { readonly evictor: Evictor; readonly killed: string[] } {
  const evictor = new Evictor({ clock, journal: new MemoryRecorder(), log: silentLog }, 0);
  const killed: string[] = [];
  evictor.connect({
    pods: {
      list: () =>
        known.map((pod) => {
          const state = states.get(pod.metadata.name) ?? { kind: "syncing" };
          return { view: { ref: podRef(pod), pod, state, status }, forgotten: false };
        }),
    },
    killer: {
      kill: async ({ metadata }) => {
        killed.push(metadata.name);
        return true;
      },
    },
    startUp: { has: () => true },
  });
  return { evictor, killed };
}

test("a pod that seems to exceed its limit is measured again before it is evicted", async () => {
  const clock = new ManualClock();
  const { evictor, killed } = evictorOf(clock, [...pods, podWith("unlimited")]);
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
  const evictions = new LimitEvictions({ clock, usage, evictor, accepted, reports: { tell: () => true } });
  assert.equal(await evictions.enforce(async () => "one", new AbortController().signal), true);
  assert.deepEqual(asked, [
    ["limits", "over", "was-over", "within"],
    ["anew", "over", "was-over"],
  ]);
  assert.deepEqual(killed, ["over"]);
});

test("a volume whose walk was cut off counts by the walk before if that ended within the last minute", async () => {
  for (const [agoMs, victims] of [
    [50_000, ["v"]],
    [70_000, []],
  ] as const) {
    const clock = new ManualClock();
    const sized = podWith("v", {}, { volumes: [{ name: "data", emptyDir: { sizeLimit: "1Mi" } }] });
    const { evictor, killed } = evictorOf(clock, [sized]);
    const volumes = [{ name: "data", isLocal: true, bytes: over, inodes: 1 }];
    const own = { containers: [], volumes, volumesMs: clock.monotonic() - agoMs };
    const usage = { readStorage: async () => new Map([[sized.metadata.uid as string, own]]) };
    const accepted = { changeOfLimits: undefined };
    const evictions = new LimitEvictions({ clock, usage, evictor, accepted, reports: { tell: () => true } });
    await evictions.enforce(async () => "one", new AbortController().signal);
    assert.deepEqual(killed, victims);
  }
});

test("logs and layers that alone exceed the limit of a pod count, however old the figures of its volumes are", async () => {
  for (const [ofVolume, ofOthers, victims] of [
    [over, over, ["v"]],
    [over, 1, []],
  ] as const) {
    const clock = new ManualClock();
    const pod = podWith("v", {}, { containers: [container], volumes: [{ name: "data", emptyDir: {} }] });
    const { evictor, killed } = evictorOf(clock, [pod]);
    const volumes = [
      { name: "data", isLocal: true, bytes: ofVolume, inodes: 1 },
      { name: "claim", isLocal: false, bytes: 9 * over, inodes: 1 },
    ];
    const volumesMs = clock.monotonic() - 70_000;
    const own = { containers: [], volumes, volumesMs, ephemeralBytes: ofVolume + ofOthers };
    const usage = { readStorage: async () => new Map([[pod.metadata.uid as string, own]]) };
    const accepted = { changeOfLimits: undefined };
    const evictions = new LimitEvictions({ clock, usage, evictor, accepted, reports: { tell: () => true } });
    await evictions.enforce(async () => "one", new AbortController().signal);
    assert.deepEqual(killed, victims);
  }
});

test("a pod that is being deleted is held to its limit as long as an eviction stops it sooner", async () => {
  const clock = new ManualClock();
  const deleted = unwanted({ code: "PodDeleted", message: "the pod is being deleted" }, 30);
  const stoppedBy = (seconds: number): WorkerState => {
    return { kind: "terminating", ending: deleted, killAtMs: clock.monotonic() + seconds * 1000 };
  };
  const states = new Map([
    ["over", stoppedBy(3600)],
    ["was-over", stoppedBy(1)],
    ["within", stoppedBy(-10)],
  ]);
  const { evictor, killed } = evictorOf(clock, pods, states);
  const usage = { readStorage: async () => new Map(pods.map(({ metadata }) => [metadata.uid as string, uses(over)])) };
  const accepted = { changeOfLimits: undefined };
  const evictions = new LimitEvictions({ clock, usage, evictor, accepted, reports: { tell: () => true } });
  assert.equal(await evictions.enforce(async () => "one", new AbortController().signal), true);
  assert.deepEqual(killed, ["over"]);
});

test("a machine that does not answer delays limits and previews by 20 seconds", async () => {
  const scene = new EvictionScene({ thresholds: [] });
  scene.add(podWith("over", {}, { containers: [container] }), 1);
  scene.usages.set("uid-over", { containers: [], volumes: [], ephemeralBytes: 2 << 20 });
  scene.sight = new Promise(() => {});
  await scene.play(async () => {
    for (const name of [undefined, "nodefs.available"]) {
      const preview = scene.manager.preview(name);
      await scene.clock.advance(20_000);
      const { standing, pods: previewed } = await preview;
      assert.match(standing, / is unknown; .*not measured: the machine \(.*timed out after 20 s\)/u);
      assert.equal(previewed.length, 1);
    }
    scene.sight = Promise.resolve();
    await scene.clock.advance(30_000);
    assert.deepEqual(scene.victims, ["over"]);
  });
});
