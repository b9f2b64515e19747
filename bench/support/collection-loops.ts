import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pod } from "../../src/api/pod.ts";
import { containerId, podUid, sandboxId } from "../../src/base/ids.ts";
import { MachineObservations } from "../../src/engine/machine-observations.ts";
import { AcceptedEvictions } from "../../src/eviction/accepted-evictions.ts";
import { EvictionManager } from "../../src/eviction/manager.ts";
import { parseThresholds } from "../../src/eviction/thresholds.ts";
import { ImageCollector } from "../../src/images/image-collector.ts";
import { ImageFileSystem } from "../../src/images/image-file-system.ts";
import { ImageLeases } from "../../src/images/image-leases.ts";
import { ImageUses } from "../../src/images/image-uses.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { openStatsFiles } from "../../src/linux/files/stats-files.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Cri } from "../../src/ports/cri.ts";
import { defaultGarbagePolicy } from "../../src/runtime/actions/garbage.ts";
import { NodeGarbage } from "../../src/runtime/operations/node-garbage.ts";
import { PodHoldings } from "../../src/runtime/pod-holdings.ts";
import type { PodStatus } from "../../src/runtime/status/pod-status.ts";
import { silentLog } from "../../src/sim/machine.ts";
import { testContainer, testSandbox, testStatus } from "../../test/support/observed.ts";

/** A loop of a node, and what a turn of it costs. */
export interface Loop {
  readonly name: string;
  /** Between two turns. */
  readonly periodMs: number;
  readonly cpuMs: number;
}

const images = 100;
const silent = { record: () => 1 };
const never = new AbortController().signal;

interface MadeUp {
  readonly pod: Pod;
  readonly status: PodStatus;
}

function madeUp(index: number): MadeUp {
  const uid = podUid(`00000000-0000-4000-8000-${String(index).padStart(12, "0")}`);
  const pod: Pod = {
    metadata: { name: `pod-${index}`, namespace: "bench", uid },
    spec: { containers: [{ name: "c", image: `registry/app:${index % images}` }] },
  };
  const status = testStatus(
    [testSandbox({ id: sandboxId(`s${index}`) })],
    [testContainer({ id: containerId(`c${index}`), state: "running" })],
  );
  return { pod, status: { ...status, uid, name: pod.metadata.name, namespace: "bench" } };
}

/** A runtime with an image of each name and a container of each pod, which responds at once. */
function runtimeOf(pods: readonly MadeUp[]): Cri {
  const listed = Array.from({ length: images }, (_, index) => {
    return { id: `sha256:${index}`, repoTags: [`registry/app:${index}`], repoDigests: [], size: 1n, pinned: false };
  });
  const containers = pods.map(({ status }, index) => {
    const labels = { "io.kubernetes.pod.namespace": "bench", "io.kubernetes.pod.name": status.name };
    return { id: `c${index}`, imageId: `sha256:${index % images}`, imageRef: "", metadata: { name: "c" }, labels };
  });
  const imageFilesystems = [{ fsId: { mountpoint: "/" } }];
  const cri = {
    images: {
      listImages: async () => ({ images: listed }),
      imageFsInfo: async () => ({ imageFilesystems, containerFilesystems: imageFilesystems }),
    },
    runtime: { listContainers: async () => ({ containers }), status: async () => ({ info: {} }) },
  };
  return cri as unknown as Cri;
}

/** The CPU time of one turn, on average. */
async function measure(rounds: number, turn: () => Promise<void>): Promise<number> {
  await turn();
  const before = process.cpuUsage();
  for (let round = 0; round < rounds; round++) await turn();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / rounds;
}

/** Pauses pass at once, but count: each is the end of a turn. */
function hurriedClock(): {
  readonly clock: Clock;
  readonly turn: () => Promise<void>;
  readonly pausedMs: () => number;
} {
  let passedMs = 0;
  let pausedMs = 0;
  let ended = Promise.withResolvers<void>();
  let begun = Promise.withResolvers<void>();
  const clock: Clock = {
    ...systemClock,
    monotonic: () => systemClock.monotonic() + passedMs,
    sleep: async (_name, delayMs) => {
      passedMs += delayMs;
      pausedMs = delayMs;
      ended.resolve();
      await begun.promise;
    },
  };
  const turn = async (): Promise<void> => {
    ended = Promise.withResolvers<void>();
    const last = begun;
    begun = Promise.withResolvers<void>();
    last.resolve();
    await ended.promise;
  };
  return { clock, turn, pausedMs: () => pausedMs };
}

async function evictionLoop(pods: readonly MadeUp[], cri: Cri, rounds: number): Promise<Loop> {
  const files = await openStatsFiles(systemClock);
  const { clock, turn, pausedMs } = hurriedClock();
  const node = { rootDirectory: "/", cgroupRoot: undefined, cgroupDriver: "cgroupfs" as const };
  const observations = new MachineObservations({ clock, files, cri, node, countsMemAvailable: false });
  // Far from what any machine has left, so that the loop is at its usual pace.
  const hard = {
    ...{ "memory.available": "1Mi", "nodefs.available": "1Mi", "nodefs.inodesFree": "1" },
    ...{ "imagefs.available": "1Mi", "imagefs.inodesFree": "1", "pid.available": "1" },
  };
  const statements = { hard, soft: {}, softGracePeriods: {}, minimumReclaim: {}, enforcesAllocatable: false };
  const thresholds = parseThresholds(statements, () => undefined);
  const usage = {
    readRunning: async () => new Map(),
    readStorage: async () => new Map(),
    layersLeft: async () => ({ there: [], unknown: [] }),
    onMeasured: () => ({ [Symbol.dispose]: () => {} }),
  };
  const directory = join(tmpdir(), "podwright-bench-none");
  const terms = { thresholds, enforcesStorageLimits: true, countsMemAvailable: false, reservedMemoryBytes: 0 };
  const accepted = new AcceptedEvictions({ files: systemFiles, log: silentLog, directory }, terms, false);
  const manager = new EvictionManager(
    { clock, journal: silent, log: silentLog, look: observations.look.bind(observations), usage, accepted },
    { thresholds, transitionMs: 300_000, maxPodGraceSeconds: 0, enforcesStorageLimits: true, watchesMemory: false },
  );
  const list = pods.map(({ pod, status }) => {
    const ref = { uid: pod.metadata.uid, namespace: "bench", name: pod.metadata.name };
    return { view: { ref, pod, state: { kind: "syncing" as const }, status }, forgotten: false };
  });
  manager.connect({ pods: { list: () => list }, killer: { kill: async () => true }, startUp: { has: () => true } });
  const stop = new AbortController();
  const run = manager.run(stop.signal);
  const cpuMs = await measure(rounds, turn);
  const periodMs = pausedMs();
  stop.abort();
  await Promise.race([turn(), run]);
  return { name: "evictions", periodMs, cpuMs };
}

async function imageLoop(pods: readonly MadeUp[], cri: Cri, directory: string, rounds: number): Promise<Loop> {
  const disk = await openStatsFiles(systemClock);
  const collector = new ImageCollector(
    {
      ...{ clock: systemClock, journal: silent, log: silentLog, images: cri.images, runtime: cri.runtime },
      fileSystem: new ImageFileSystem({ clock: systemClock, images: cri.images, disk }),
      uses: new ImageUses({ clock: systemClock, files: systemFiles, log: silentLog }, join(directory, "uses.json")),
      labels: { namespace: "io.kubernetes.pod.namespace", pod: "io.kubernetes.pod.name" },
    },
    { highThresholdPercent: 99, lowThresholdPercent: 98, minAgeMs: 120_000, maxAgeMs: 86_400_000, onlyPulled: false },
  );
  const wanted = pods.map(({ pod: { metadata, spec } }) => {
    return { pod: `bench/${metadata.name}`, names: [spec.containers[0]?.image ?? ""] };
  });
  const access = { isPulled: async () => true, prune: async () => true };
  const services = { access, ready: () => true, wanted: () => wanted, mayMount: () => [] };
  collector.connect({ leases: new ImageLeases(), ...services });
  const cpuMs = await measure(rounds, async () => await collector.collect(never));
  return { name: "images", periodMs: 300_000, cpuMs };
}

/** With a log directory of each pod and a link of each container, as on a node. */
async function containerLoop(pods: readonly MadeUp[], directory: string, rounds: number): Promise<Loop> {
  const [podLogsRoot, containerLogsRoot] = [join(directory, "pods"), join(directory, "containers")];
  await mkdir(containerLogsRoot);
  for (const { pod, status } of pods) {
    const { uid, name } = pod.metadata;
    const logs = join(podLogsRoot, `bench_${name}_${uid}`, "c");
    await mkdir(logs, { recursive: true });
    await writeFile(join(logs, "0.log"), "");
    const id = status.containers[0]?.id ?? "";
    await symlink(join(logs, "0.log"), join(containerLogsRoot, `${name}_bench_c-${id}.log`));
  }
  const byUid = new Map(pods.map(({ status }) => [status.uid, status]));
  const garbage = new NodeGarbage(
    {
      effects: { clock: systemClock, files: systemFiles, journal: silent, log: silentLog },
      removal: { removeDead: async () => {}, lately: [] },
      collector: { removeParts: async () => ({ containers: [], sandboxes: [], failures: [] }) },
      holdings: new PodHoldings([]),
      node: { rootDirectory: directory, podLogsRoot, containerLogsRoot },
      ...{ ready: () => true, isOver: () => false, isEvicted: () => false },
      pods: () => pods.map(({ status }) => status),
      pod: (uid) => byUid.get(uid),
      known: (uid) => byUid.has(uid),
      logOwners: async () => ({ has: async () => false }),
    },
    { ...defaultGarbagePolicy, periodMs: 60_000 },
  );
  const cpuMs = await measure(rounds, async () => await garbage.collect(never));
  return { name: "containers and logs", periodMs: 60_000, cpuMs };
}

/** Turns of the loops that watch the machine and collect garbage, with this many made-up pods and nothing to do. */
export async function measureLoops(count: number, rounds: number): Promise<readonly Loop[]> {
  const pods = Array.from({ length: count }, (_, index) => madeUp(index));
  const cri = runtimeOf(pods);
  const directory = await mkdtemp(join(tmpdir(), "podwright-bench-"));
  try {
    return [
      await evictionLoop(pods, cri, rounds),
      await imageLoop(pods, cri, directory, rounds),
      await containerLoop(pods, directory, rounds),
    ];
  } finally {
    await rm(directory, { recursive: true });
  }
}
