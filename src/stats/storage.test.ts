import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";
import { silentLog } from "../../test/support/sources.ts";
import { RecordedStatsFiles } from "../../test/support/stats.ts";
import type { PodSpec } from "../api/pod.ts";
import { containerId } from "../base/ids.ts";
import type { Cri } from "../ports/cri.ts";
import type { FileSystemUsage, TreeUsage } from "../ports/stats-files.ts";
import { runtimeWays } from "./runtime-ways.ts";
import { statsPod } from "./stats-pods.ts";
import { StorageStats } from "./storage.ts";
import type { PodStorage } from "./storage-types.ts";
import { VolumeUsage } from "./volume-usage.ts";

/** Paths that contain the text do not answer until its end. */
class StallingFiles extends RecordedStatsFiles {
  stalled: string | undefined;
  readonly end = Promise.withResolvers<void>();
  readonly asked: string[] = [];
  freeBytes = 400;

  async #access(path: string): Promise<void> {
    this.asked.push(path);
    if (this.stalled !== undefined && path.includes(this.stalled)) await this.end.promise;
  }

  override async fileSystem(path = ""): Promise<FileSystemUsage | undefined> {
    await this.#access(path);
    const fileSystem = await super.fileSystem();
    return fileSystem && { ...fileSystem, availableBytes: this.freeBytes };
  }

  override async filesUsage(path = ""): Promise<TreeUsage | undefined> {
    await this.#access(path);
    return await super.filesUsage();
  }
}

function scene(spec: Partial<PodSpec> = {}) {
  const [clock, files] = [new ManualClock(), new StallingFiles({ version: 2, root: "/cg" })];
  const naming = { cgroupRoot: "/", cgroupDriver: "cgroupfs", runtime: runtimeWays("containerd") } as const;
  const pods = ["one", "two"].map((name) => {
    const pod = testPod(spec, `uid-${name}`, name);
    const status = testStatus([testSandbox()], [testContainer({ id: containerId(`c-${name}`) })]);
    const made = statsPod(pod, status, naming);
    assert.ok(made);
    return made;
  });
  const { signal } = new AbortController();
  const volumes = new VolumeUsage({ clock, files }, { rootDirectory: "/kubelet", periodMs: 60_000 }, signal);
  const usedBytes = { value: 7n };
  const usageOf = (mountpoint: string): object => ({ timestamp: 1n, fsId: { mountpoint }, usedBytes });
  const cri = {
    runtime: { listContainerStats: async () => ({ stats: [] }) },
    images: {
      imageFsInfo: async () => {
        usedBytes.value++;
        return { imageFilesystems: [usageOf("/images")], containerFilesystems: [usageOf("/layers")] };
      },
    },
  } as unknown as Cri;
  const layers = { measure: async () => new Map() };
  const places = {
    rootDirectory: "/kubelet",
    podLogsRoot: "/logs",
    external: () => [],
    runtime: { measuresImages: true },
  };
  const warnings: unknown[] = [];
  const log = { ...silentLog, warn: (_message: string, fields: object = {}) => warnings.push(fields) };
  const stats = new StorageStats({ clock, files, cri, log, volumes, layers, ...places }, signal);
  const measure = async (running = pods, anew = true): Promise<ReadonlyMap<string, PodStorage>> =>
    await stats.ofPods(running, new Set(running.map(({ ref }) => ref.uid)), { anew, layers: true });
  return { clock, files, pods, stats, measure, warnings };
}

test("a pod whose storage stalls is missing after 5 seconds, and the others are there", async () => {
  const { clock, files, measure } = scene();
  files.stalled = "_one_";
  const first = measure();
  await clock.advance(5000);
  assert.deepEqual([...(await first).keys()], ["uid-two"]);
  const before = files.asked.filter((path) => path.includes("_one_")).length;
  assert.deepEqual([...(await measure()).keys()], ["uid-two"], "it is not waited for again");
  assert.equal(files.asked.filter((path) => path.includes("_one_")).length, before, "nor asked");
  files.end.resolve();
  await settle();
  assert.deepEqual([...(await measure()).keys()], ["uid-one", "uid-two"]);
});

test("what pods use is known although the file system that they are on does not say its size", async () => {
  const { clock, files, measure } = scene();
  files.stalled = "/kubelet";
  const measured = measure();
  await clock.advance(2000);
  const { ephemeral } = (await measured).get("uid-one") ?? {};
  assert.ok((ephemeral?.usedBytes ?? 0) > 0);
  assert.equal(ephemeral?.capacityBytes, undefined);
});

test("what is free on the runtime's file systems is read with each request, and the runtime asked every 10 s", async () => {
  const { clock, files, stats } = scene();
  const figures = async (): Promise<unknown[]> => {
    const { fs, imageFs, containerFs } = await stats.collect([]);
    assert.equal(containerFs?.usedBytes, imageFs?.usedBytes);
    return [fs?.availableBytes, imageFs?.availableBytes, containerFs?.availableBytes, imageFs?.usedBytes];
  };
  assert.deepEqual(await figures(), [400, 400, 400, 8]);
  files.freeBytes = 300;
  assert.deepEqual(await figures(), [300, 300, 300, 8]);
  await clock.advance(10_001);
  assert.deepEqual(await figures(), [300, 300, 300, 9]);
});

test("images whose file system does not say its size are reported after 2 seconds with what they use", async () => {
  const { clock, files, stats } = scene();
  files.stalled = "/images";
  const collected = stats.collect([]);
  await clock.advance(2000);
  const { imageFs, containerFs } = await collected;
  assert.deepEqual([imageFs?.usedBytes, imageFs?.availableBytes], [8, undefined]);
  assert.deepEqual([containerFs?.usedBytes, containerFs?.availableBytes], [8, 400]);
});

test("what is known of a pod is forgotten once it no longer runs, also on a node that nobody scrapes", async () => {
  const { clock, files, pods, measure, warnings } = scene({ volumes: [{ name: "data", emptyDir: {} }] });
  const measured = async (running = pods): Promise<string[]> => {
    files.asked.length = 0;
    await measure(running, false);
    return files.asked.filter((path) => path.endsWith("/data"));
  };
  assert.equal(new Set(await measured()).size, 2);
  assert.deepEqual(await measured(), [], "within the period the figures do");
  await measured(pods.slice(1));
  assert.deepEqual(new Set((await measured()).map((path) => path.includes("uid-one"))), new Set([true]));
  files.stalled = "_one_";
  for (const running of [pods, pods, pods.slice(1), pods]) {
    const reading = measure(running);
    await clock.advance(5000);
    await reading;
  }
  assert.equal(warnings.length, 2, "a stall is logged once for each life of the pod");
});
