import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import type { CloudInstance } from "./cloud-provider.ts";
import { CloudResourceSync } from "./cloud-resource-sync.ts";

const instance: CloudInstance = {
  providerId: "aws:///z/i-1",
  instanceType: "large",
  zone: "z",
  region: "",
  addresses: [
    { type: "InternalIP", address: "10.0.0.1" },
    { type: "InternalIP", address: "10.0.0.2" },
    { type: "ExternalIP", address: "192.0.2.1" },
  ],
};

interface Scene {
  readonly sync: CloudResourceSync;
  readonly clock: ManualClock;
  /** What the cloud answers from now on; an error: it fails. */
  reply: CloudInstance | Error;
  asked: number;
  changes: number;
  readonly notes: () => string[];
}

async function withSync(work: (scene: Scene) => Promise<void>, nodeIps: readonly string[] = []): Promise<void> {
  const clock = new ManualClock();
  const journal = new MemoryRecorder();
  const provider = {
    name: "ec2",
    instance: async () => {
      scene.asked++;
      if (scene.reply instanceof Error) throw scene.reply;
      return scene.reply;
    },
  };
  const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
  const onChange = (): void => void scene.changes++;
  const deps = { provider, clock, random, journal, log: silentLog, onChange };
  const sync = new CloudResourceSync(deps, { periodMs: 10_000, nodeIps });
  const notes = (): string[] => journal.entries.map(({ what }) => what);
  const scene: Scene = { sync, clock, notes, reply: instance, asked: 0, changes: 0 };
  const stop = new AbortController();
  const ended = sync.run(stop.signal);
  await work(scene);
  stop.abort(new Error("the test is over"));
  await ended;
  assert.deepEqual(clock.waits, []);
}

/** Whether the wait for the first answer is over. */
async function isKnown(sync: CloudResourceSync): Promise<boolean> {
  let known = false;
  void sync.known(new AbortController().signal).then(() => (known = true));
  await settle();
  return known;
}

test("a cloud is polled at once and then every period, and only changes are reported", async () => {
  await withSync(async (scene) => {
    assert.ok(await isKnown(scene.sync));
    assert.deepEqual(scene.sync.facts, {
      providerId: "aws:///z/i-1",
      labels: {
        "node.kubernetes.io/instance-type": "large",
        "beta.kubernetes.io/instance-type": "large",
        "topology.kubernetes.io/zone": "z",
        "failure-domain.beta.kubernetes.io/zone": "z",
      },
      addresses: instance.addresses,
    });
    await scene.clock.advance(30_000);
    assert.deepEqual([scene.asked, scene.changes], [4, 1]);
    scene.reply = { ...instance, zone: "y" };
    await scene.clock.advance(10_000);
    assert.deepEqual([scene.changes, scene.sync.facts?.labels["topology.kubernetes.io/zone"]], [2, "y"]);
  });
});

test("a cloud that fails is polled with growing delays, logged once, and the last known metadata stays in use", async () => {
  await withSync(async (scene) => {
    await settle();
    scene.reply = new Error("status 500");
    const { asked } = scene;
    await scene.clock.advance(10_000 + 1000 + 2000 + 4000);
    assert.equal(scene.asked - asked, 4);
    await scene.clock.advance(8000 + 16_000 + 32_000 + 3 * 60_000);
    assert.equal(scene.asked - asked, 10);
    assert.equal(scene.sync.facts?.providerId, "aws:///z/i-1");
    assert.deepEqual(scene.notes(), ["CloudMetadataFailed"]);
    assert.deepEqual([scene.sync.check().ok, scene.sync.check().detail.includes("status 500")], [false, true]);
    scene.reply = instance;
    await scene.clock.advance(60_000);
    assert.deepEqual(scene.notes(), ["CloudMetadataFailed", "CloudMetadataAnswers"]);
    assert.ok(scene.sync.check().ok);
  });
});

test("a node waits 30 s for its cloud's first response, and then continues without it", async () => {
  const clock = new ManualClock();
  const provider = { name: "gce", instance: async () => await Promise.reject(new Error("nobody is there")) };
  const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
  const deps = { provider, clock, random, journal: new MemoryRecorder(), log: silentLog, onChange: () => {} };
  const sync = new CloudResourceSync(deps, { periodMs: 10_000, nodeIps: [] });
  const stop = new AbortController();
  const ended = sync.run(stop.signal);
  await clock.advance(29_999);
  assert.equal(await isKnown(sync), false);
  await clock.advance(1);
  assert.equal(await isKnown(sync), true);
  assert.equal(sync.facts, undefined);
  stop.abort(new Error("the test is over"));
  await ended;
});

test("an address of --node-ip replaces the others of its family, and must be one of the cloud's", async () => {
  await withSync(
    async ({ sync }) => {
      assert.ok(await isKnown(sync));
      assert.deepEqual(
        sync.facts?.addresses.map(({ address }) => address),
        ["10.0.0.2", "192.0.2.1"],
      );
    },
    ["10.0.0.2"],
  );
  await withSync(
    async ({ sync }) => {
      await settle();
      assert.match(sync.check().detail, /failed to get node address from cloud provider that matches ip: 10\.9\.9\.9/u);
    },
    ["10.9.9.9"],
  );
});
