import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import { FileError } from "../ports/files.ts";
import type { StatsFiles, TreeUsage } from "../ports/stats-files.ts";
import type { VolumeStats } from "./summary-types.ts";
import { isEphemeral, type MeasuredVolumes, VolumeUsage } from "./volume-usage.ts";

const { signal } = new AbortController();
const emptyDirectories = "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir";
const fileSystem = { capacityBytes: 1000, availableBytes: 400, usedBytes: 500, inodes: 100, inodesFree: 60 };

test("a volume with a quota is measured by it, and the tree of another one is walked", async () => {
  const walked: string[] = [];
  const files: Pick<StatsFiles, "fileSystem" | "treeUsage"> = {
    fileSystem: async () => fileSystem,
    treeUsage: async (path) => {
      walked.push(path);
      return { bytes: 10, inodes: 2 };
    },
  };
  const quotaUsage = async (_pod: unknown, directory: string): Promise<TreeUsage | undefined> =>
    directory.endsWith("/quota") ? { bytes: 700, inodes: 7 } : undefined;
  const usage = new VolumeUsage(
    { clock: new ManualClock(), files, quotaUsage },
    { rootDirectory: "/var/lib/kubelet", periodMs: 60_000 },
    signal,
  );
  const volumes = ["quota", "other"].map((name) => ({ name, emptyDir: {} }));
  const { stats } = await usage.of(podWith({ volumes }));
  assert.deepEqual(
    stats.map(({ name, usedBytes, inodesUsed, capacityBytes }) => [name, usedBytes, inodesUsed, capacityBytes]),
    [
      ["quota", 700, 7, 1000],
      ["other", 10, 2, 1000],
    ],
  );
  assert.deepEqual(walked, [`${emptyDirectories}/other`]);
});

test("walks that hang delay those of other pods by 20 seconds, and not any longer", async () => {
  const clock = new ManualClock();
  const stall = Promise.withResolvers<undefined>();
  const files: Pick<StatsFiles, "fileSystem" | "treeUsage"> = {
    fileSystem: async () => fileSystem,
    treeUsage: async (path) => (path.includes("/stalled") ? await stall.promise : { bytes: 10, inodes: 2 }),
  };
  const usage = new VolumeUsage({ clock, files }, { rootDirectory: "/var/lib/kubelet", periodMs: 60_000 }, signal);
  const measure = async (name: string): Promise<readonly VolumeStats[]> =>
    (await usage.of(podWith({ volumes: [{ name, emptyDir: {} }] }, { uid: name }))).stats;
  const stalled = ["stalled-1", "stalled-2"].map(measure);
  const other = measure("other");
  await clock.advance(2000);
  assert.deepEqual(await Promise.all([...stalled, other]), [[], [], []]);
  await clock.advance(18_000);
  assert.deepEqual(
    (await measure("other")).map(({ name }) => name),
    ["other"],
  );
  stall.resolve(undefined);
});

test("a fresh measurement that takes too long gives the figures of the one before, with its end", async () => {
  const clock = new ManualClock();
  let walk: Promise<TreeUsage> = Promise.resolve({ bytes: 10, inodes: 2 });
  const files = { fileSystem: async () => fileSystem, treeUsage: async () => await walk };
  const usage = new VolumeUsage({ clock, files }, { rootDirectory: "/var/lib/kubelet", periodMs: 60_000 }, signal);
  const pod = podWith({ volumes: [{ name: "data", emptyDir: {} }] });
  const figures = ({ stats, measuredMs }: MeasuredVolumes): unknown[] => [stats[0]?.usedBytes, measuredMs];
  await clock.advance(1000);
  const firstMs = clock.monotonic();
  assert.deepEqual(figures(await usage.of(pod)), [10, firstMs]);
  await clock.advance(300_000);
  const late = Promise.withResolvers<TreeUsage>();
  walk = late.promise;
  const cutOff = usage.of(pod, true);
  await clock.advance(2000);
  assert.deepEqual(figures(await cutOff), [10, firstMs]);
  late.resolve({ bytes: 70, inodes: 2 });
  await clock.advance(1);
  assert.deepEqual(figures(await usage.of(pod)), [70, firstMs + 302_000]);
  assert.deepEqual(await usage.of(podWith({})), { stats: [], measuredMs: undefined });
});

test("a pod's figures are as old as the first of its volumes, when the others take long", async () => {
  const clock = new ManualClock();
  const files: Pick<StatsFiles, "fileSystem" | "treeUsage"> = {
    fileSystem: async () => fileSystem,
    treeUsage: async (path) => {
      if (path.endsWith("/large")) await clock.sleep("a large volume to be walked", 1500, signal);
      return { bytes: 10, inodes: 2 };
    },
  };
  const usage = new VolumeUsage({ clock, files }, { rootDirectory: "/var/lib/kubelet", periodMs: 60_000 }, signal);
  const volumes = ["small", "large"].map((name) => ({ name, emptyDir: {} }));
  const beganMs = clock.monotonic();
  const measuring = usage.of(podWith({ volumes }));
  await clock.advance(1500);
  const { stats, measuredMs } = await measuring;
  assert.deepEqual([stats.length, measuredMs], [2, beganMs]);
});

test("a walk that is refused because its disk hangs leaves the figures of before, and its place to others", async () => {
  const clock = new ManualClock();
  let isHanging = false;
  const treeUsage = async (path: string): Promise<TreeUsage> => {
    if (isHanging && !path.includes("/other")) throw new FileError("ETIMEDOUT", "/", "the disk does not answer");
    return { bytes: 10, inodes: 2 };
  };
  const files = { fileSystem: async () => fileSystem, treeUsage };
  const usage = new VolumeUsage({ clock, files }, { rootDirectory: "/var/lib/kubelet", periodMs: 60_000 }, signal);
  const podOf = (name: string): Pod => podWith({ volumes: [{ name, emptyDir: {} }] }, { uid: name });
  const before = await usage.of(podOf("one"));
  assert.equal(before.stats.length, 1);
  isHanging = true;
  await clock.advance(1000);
  for (const name of ["two", "three", "four"]) assert.deepEqual((await usage.of(podOf(name))).stats, []);
  assert.deepEqual(await usage.of(podOf("one"), true), before);
  assert.equal((await usage.of(podOf("other"))).stats.length, 1);
});

test("volumes on the node's disk count as ephemeral storage, those in memory and on huge pages do not", () => {
  const media = ["", "Memory", "HugePages", "HugePages-2Mi"];
  const volumes = media.map((medium) => ({ name: medium === "" ? "disk" : medium, emptyDir: { medium } }));
  const pod = podWith({ volumes: [...volumes, { name: "settings", configMap: { name: "c" } }] });
  const names = (pod.spec.volumes ?? []).map(({ name }) => name);
  assert.deepEqual(
    names.filter((name) => isEphemeral(pod, name)),
    ["disk", "settings"],
  );
});
