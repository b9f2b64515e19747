import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/eviction.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { LayersLeft, MeasuredKind, PodUsage } from "../eviction/pod-usage.ts";
import type { NodeSample } from "../stats/node-sample.ts";
import type { StatsPod } from "../stats/stats-pods.ts";
import type { NodeStorage, PodStorage } from "../stats/storage-types.ts";
import type { FsStats } from "../stats/summary-types.ts";
import type { Measured } from "./node-stats.ts";
import { PodUsages } from "./pod-usages.ts";

const never = new AbortController().signal;
const web = podWith("web", {}, { volumes: ["data", "late"].map((name) => ({ name, emptyDir: {} })) });
const { uid } = web.metadata;
const statsPod = { ref: { uid }, pod: web, containers: [{ name: "a" }, { name: "b" }] } as unknown as StatsPod;
const fs = (usedBytes: number, inodesUsed?: number): FsStats => ({ usedBytes, inodesUsed }) as unknown as FsStats;

/** Containers `a` and `b` with these processes; undefined: its cgroup was not found. */
function sampleOf(pids: readonly (readonly number[] | undefined)[]): NodeSample {
  const containers = pids.flatMap((own, index) => {
    const container = statsPod.containers[index];
    return own === undefined ? [] : [{ container, sample: { pids: own, memory: { workingSet: 5 } } }];
  });
  const pod = { pod: statsPod, sample: { memory: { workingSet: 12 } }, containers };
  return { pods: [pod] } as unknown as NodeSample;
}

/** `a` has everything but an inode count of its layer, `b` has no figures yet, and `late` was not measured. */
const stored = {
  containers: new Map([
    ["1", { name: "a", rootfs: fs(10), logs: fs(3, 1) }],
    ["2", { name: "b", rootfs: undefined, logs: undefined }],
  ]),
  volumes: [{ name: "data", ...fs(20, 2) }],
  volumesMs: 7,
  ephemeral: fs(33),
} as unknown as PodStorage;

class Stats {
  sample = sampleOf([[1, 2], [3]]);
  listener: (measured: Measured) => void = () => {};

  readonly sampleAnew = async (): Promise<NodeSample> => this.sample;
  readonly storageOf = async (): Promise<ReadonlyMap<string, PodStorage>> => new Map([[uid as string, stored]]);
  readonly layersLeft = async (): Promise<LayersLeft> => ({ there: [], unknown: [] });
  readonly onMeasured = (listener: (measured: Measured) => void): Disposable => {
    this.listener = listener;
    return { [Symbol.dispose]: () => {} };
  };
}

test("processes are unknown while a running container has none, or its cgroup is not found", async () => {
  const stats = new Stats();
  const usages = new PodUsages(new ManualClock(), stats);
  const read = async (): Promise<unknown[]> => {
    const usage = (await usages.readRunning([web], never)).get(uid);
    return [usage?.memoryBytes, usage?.processes];
  };
  assert.deepEqual(await read(), [12, 3]);
  stats.sample = sampleOf([[1, 2], []]);
  assert.deepEqual(await read(), [12, undefined]);
  stats.sample = sampleOf([[1, 2], undefined]);
  assert.deepEqual(await read(), [12, undefined]);
});

test("a pod between two restarts uses what its cgroup has, and is unknown without one", async () => {
  const stats = new Stats();
  const usages = new PodUsages(new ManualClock(), stats);
  const none = { ...statsPod, containers: [] };
  const read = async (sample: object | undefined): Promise<unknown[]> => {
    stats.sample = { pods: [{ pod: none, sample, containers: [] }] } as unknown as NodeSample;
    const usage = (await usages.readRunning([web], never)).get(uid);
    return [usage?.memoryBytes, usage?.processes];
  };
  assert.deepEqual(await read({ memory: { workingSet: 4 } }), [4, 0]);
  assert.deepEqual(await read(undefined), [undefined, 0]);
});

test("storage that was not measured is unknown, and a container without a log directory has no logs", async () => {
  const usage = (await new PodUsages(new ManualClock(), new Stats()).readStorage([web], "anew", never)).get(uid);
  assert.deepEqual(usage, {
    containers: [
      { name: "a", rootfs: { bytes: 10, inodes: undefined }, logs: { bytes: 3, inodes: 1 } },
      { name: "b", rootfs: undefined, logs: { bytes: 0, inodes: 0 } },
    ],
    volumes: [
      { name: "data", isLocal: true, bytes: 20, inodes: 2 },
      { name: "late", isLocal: true },
    ],
    volumesMs: 7,
    ephemeralBytes: 33,
  });
});

test("what is measured for others is passed on, and only converted if it is read", () => {
  const stats = new Stats();
  const heard: [MeasuredKind, PodUsage | undefined][] = [];
  new PodUsages(new ManualClock(), stats).onMeasured((kind, read) => heard.push([kind, read().get(uid)]));
  stats.listener({ sample: stats.sample });
  const storage = { pods: new Map([[uid as string, stored]]) } as unknown as NodeStorage;
  stats.listener({ stored: { pods: [statsPod], storage } });
  assert.deepEqual(
    heard.map(([kind, usage]) => [kind, usage?.memoryBytes, usage?.ephemeralBytes]),
    [
      ["running", 12, undefined],
      ["storage", undefined, 33],
    ],
  );
});
