import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/eviction.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { DecisionUsage } from "./decision-usage.ts";
import type { PodUsage, PodUsageReader } from "./pod-usage.ts";
import { RecentUsage } from "./recent-usage.ts";
import type { Signal } from "./thresholds.ts";

const never = new AbortController().signal;
const web = podWith("web");
const about: Signal = "nodefs.available";

/** A pod with 5 bytes in its layer, and in its volume as many as it had at the end of the last walk. */
class Scene {
  readonly clock = new ManualClock();
  readonly asked: string[] = [];
  usage: PodUsage | undefined;
  fails = false;
  onRead: () => void = () => {};
  readonly #decision: DecisionUsage;

  constructor() {
    const { clock } = this;
    const reader: PodUsageReader = {
      readRunning: async () => new Map(),
      readStorage: async (_pods, how) => {
        this.asked.push(how);
        this.onRead();
        if (this.fails) throw new Error("timed out");
        return new Map(this.usage && [[web.metadata.uid, this.usage]]);
      },
      layersLeft: async () => ({ there: [], unknown: [] }),
      onMeasured: () => ({ [Symbol.dispose]: () => {} }),
    };
    const recent = new RecentUsage({ clock, usage: reader, signals: () => [about], fileSystems: () => "imagefs" });
    this.#decision = new DecisionUsage({ clock, log: silentLog, usage: reader, recent });
  }

  walked(bytes: number, agoMs: number): void {
    const volumes = [{ name: "data", isLocal: true, bytes, inodes: 1 }];
    const containers = [{ name: "c", rootfs: { bytes: 5, inodes: 1 }, logs: { bytes: 0, inodes: 0 } }];
    this.usage = { containers, volumes, volumesMs: this.clock.monotonic() - agoMs };
  }

  async isEarly(signal: Signal = about): Promise<boolean> {
    return (await this.#decision.read(signal, [web], "imagefs", never)).isEarly;
  }

  /** The volume's bytes, and how old they are. */
  async decide(signal: Signal = about): Promise<unknown[]> {
    const { candidates } = await this.#decision.read(signal, [web], "imagefs", never);
    const [candidate] = candidates;
    return [candidate?.usage?.volumes[0]?.bytes, candidate?.measuredAgoMs];
  }
}

test("a volume whose walk was cut off is asked for once more, and counts by the walk if that has ended then", async () => {
  const scene = new Scene();
  scene.walked(10, 3_600_000);
  scene.onRead = () => {
    if (scene.asked.length === 2) scene.walked(900, 0);
  };
  assert.deepEqual(await scene.decide(), [900, undefined]);
  assert.deepEqual(scene.asked, ["anew", "anew"]);
});

test("otherwise it has the figures of the walk before, with their age, for three minutes", async () => {
  const scene = new Scene();
  scene.walked(10, 170_000);
  assert.deepEqual(await scene.decide(), [10, 170_000]);
  scene.fails = true;
  await scene.clock.advance(5000);
  assert.deepEqual(await scene.decide(), [10, 175_000], "they are as old if nothing can be measured any more");
  await scene.clock.advance(10_000);
  assert.deepEqual(await scene.decide(), [undefined, 15_000], "what else was measured then is not as old");
  scene.fails = false;
  assert.deepEqual(await scene.decide(), [undefined, undefined]);
});

test("where volumes do not count, their age does not matter", async () => {
  const scene = new Scene();
  scene.walked(10, 3_600_000);
  assert.deepEqual(await scene.decide("imagefs.available"), [10, undefined]);
  assert.deepEqual(scene.asked, ["anew"]);
});

test("nobody is chosen before storage has failed to be measured for half a minute, whatever memory does", async () => {
  const scene = new Scene();
  scene.fails = true;
  for (const seconds of [0, 10, 20]) {
    assert.equal(await scene.isEarly(), true, `after ${seconds} s`);
    assert.equal(await scene.isEarly("memory.available"), false);
    await scene.clock.advance(10_000);
  }
  assert.equal(await scene.isEarly(), false);
});
