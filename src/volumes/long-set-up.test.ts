import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { TestStorage } from "../../test/support/storage.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import { onAbort } from "../base/abort.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import type { GroupAccess } from "../ports/volume-files.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import { AttachLimitError } from "./attachments.ts";
import type { PreparedVolume, VolumePlugin } from "./volume-plugin.ts";
import type { VolumeSpec } from "./volume-spec.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";
const windowMs = 123_000;

/** Volumes of a driver that needs as long as a test says. */
class SlowPlugin implements VolumePlugin {
  readonly name = "example.org~slow";
  readonly followsObjects = false;
  /** What a set-up does. */
  work: (signal: AbortSignal) => Promise<void> = async () => {};
  /** What precedes it. */
  attachment: (spec: VolumeSpec, signal: AbortSignal) => Promise<undefined> = async () => undefined;
  /** When set-ups began, ms. */
  readonly begunMs: number[] = [];
  readonly signals: AbortSignal[] = [];
  readonly #clock: ManualClock;
  #isSetUp = false;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  owns({ volume }: VolumeSpec): boolean {
    return volume.csi !== undefined;
  }

  prepare(_pod: Pod, { name }: VolumeSpec): PreparedVolume {
    return {
      ...{ name, type: "csi", hostPath: `/slow/${name}`, readOnly: false, own: true },
      isSetUp: async () => this.#isSetUp,
      setUp: async (running) => {
        this.begunMs.push(this.#clock.monotonic());
        this.signals.push(running);
        await this.work(running);
        this.#isSetUp = true;
      },
    };
  }

  async reconstruct(): Promise<undefined> {}
}

const pod = podOfVolumes([
  { name: "far", csi: { driver: "d.example.org" } },
  { name: "settings", configMap: { name: "settings" } },
]);
let clock: ManualClock;
let files: MemoryFiles;
let volumeFiles: SimVolumeFiles;
let slow: SlowPlugin;
let storage: TestStorage;
let volumes: VolumesUnderTest;
let rejected: string[];

beforeEach(() => {
  clock = new ManualClock(0);
  files = new MemoryFiles(clock);
  volumeFiles = new SimVolumeFiles(files);
  slow = new SlowPlugin(clock);
  storage = new TestStorage();
  rejected = [];
  volumes = new VolumesUnderTest(root, {
    ...{ clock, files, volumeFiles, mounts: new SimMounts(), loopDevices: new SimLoopDevices() },
  });
  const cluster = { storage, node: new NodeVolumes(), byController: true, labels: () => ({}) };
  volumes.restart({ cluster }, [slow]);
  volumes.manager.connect((_pod, { reason }) => rejected.push(reason));
  volumes.objects.setConfigMap("settings", { level: "debug" });
});

/** Lets what has begun do what it can at once; then time passes. */
async function pass(ms: number): Promise<void> {
  await clock.advance(0);
  await clock.advance(ms);
}

/** One wait of the pod for its volumes: whether they are set up at its end, or why not. */
async function wait(of = pod, until = signal): Promise<string> {
  try {
    return `${(await volumes.manager.mount(of, needs, cause, until)).size} set up`;
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
}

/** Work that ends at a time, or with the signal. */
function endsAt(ms: number): (signal: AbortSignal) => Promise<void> {
  return async (running) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    using _timer = clock.timer("the driver's work", ms - clock.monotonic(), resolve);
    using _abort = onAbort(running, resolve);
    await promise;
    running.throwIfAborted();
  };
}

const timedOut =
  /^unable to attach or mount volumes: unmounted volumes=\[far\], .*: volumes of pod ns\/p: timed out after 123 s$/;

test("a set-up that goes on when the wait for it ends is joined by the next wait, and not restarted", async () => {
  slow.work = endsAt(2 * windowMs + 10_000);
  for (let round = 0; round < 2; round++) {
    const waiting = wait();
    await pass(windowMs);
    assert.match(await waiting, timedOut);
  }
  const waiting = wait();
  await pass(10_000);
  assert.equal(await waiting, "2 set up");
  assert.deepEqual([slow.begunMs, slow.signals[0]?.aborted], [[0], false]);
  assert.deepEqual(volumes.outcomes.toSorted(), ["MountVolume done", "MountVolume done"]);
  assert.deepEqual(clock.waits, []);
});

test("a set-up that ends while nothing waits for it is found done by the next wait", async () => {
  slow.work = endsAt(windowMs + 10_000);
  const waiting = wait();
  await pass(windowMs);
  assert.match(await waiting, timedOut);
  await pass(20_000);
  assert.equal(volumes.outcomes.length, 2);
  assert.equal(await wait(), "2 set up");
  assert.deepEqual(slow.begunMs, [0]);
});

test("a volume that keeps failing is retried at distances that double from 0.5 s to 2 min 2 s, whichever wait it is", async () => {
  slow.work = () => Promise.reject(new VolumeError("no such disk"));
  while (clock.monotonic() < 700_000) {
    const waiting = wait();
    await pass(windowMs);
    assert.match(await waiting, /: MountVolume.SetUp failed for volume "far" : no such disk$/);
    await pass(5_000);
  }
  const distances = slow.begunMs.slice(1).map((ms, at) => ms - (slow.begunMs[at] ?? 0));
  const doubled = [0.5, 1, 2, 4, 8, 16, 32, 64].map((seconds) => seconds * 1000);
  assert.deepEqual(distances.slice(0, 12), [...doubled, 122_000, 122_000, 122_000, 122_000]);
});

test("a change of a local volume's group that takes longer than a wait is made once", async (t) => {
  await files.makeDirectory("/disks/c", 0o755);
  storage.bind("c", { local: { path: "/disks/c" } });
  let walks = 0;
  t.mock.method(volumeFiles, "giveToGroup", async (_root: string, _access: GroupAccess, running: AbortSignal) => {
    walks++;
    await endsAt(300_000)(running);
    return 1;
  });
  const claimed = [{ name: "data", persistentVolumeClaim: { claimName: "c" } }];
  const shared = podOfVolumes(claimed, { securityContext: { fsGroup: 2000 } });
  const told: string[] = [];
  for (let round = 0; round < 3; round++) {
    const waiting = wait(shared);
    await pass(windowMs);
    told.push(await waiting);
  }
  assert.deepEqual([told.at(-1), walks], ["1 set up", 1]);
});

const endings: readonly (readonly [string, (operation: AbortController) => void])[] = [
  ["its pod's operation is called off", (operation) => operation.abort(new Error("the pod ends"))],
  ["its volumes are removed", () => void volumes.manager.release(podRef(pod), { cause }, signal)],
  ["podwright begins to end", () => volumes.manager.cancel()],
  ["podwright ends", () => void volumes.manager.close()],
];
for (const [what, end] of endings) {
  for (const isJoined of [false, true]) {
    const isCalledOff = what.includes("called off");
    if (isCalledOff && !isJoined) continue;
    test(`a set-up ${isJoined ? "that a later wait has joined" : "that nothing waits for"} is canceled when ${what}`, async () => {
      slow.work = endsAt(1_000_000);
      const first = wait();
      await pass(windowMs);
      await first;
      const operation = new AbortController();
      const second = isJoined ? wait(pod, operation.signal) : undefined;
      await pass(1_000);
      assert.equal(slow.signals[0]?.aborted, false);
      end(operation);
      assert.equal(slow.signals[0]?.aborted, true);
      await pass(0);
      await second;
      assert.deepEqual(clock.waits, []);
      assert.equal(slow.begunMs.length, 1);
    });
  }
}

test("a set-up whose wait is called off goes on for another wait of its pod", async () => {
  slow.work = endsAt(50_000);
  const operation = new AbortController();
  const [first, second] = [wait(pod, operation.signal), wait()];
  await pass(10_000);
  operation.abort(new Error("one container's restart is called off"));
  assert.equal(await first, "one container's restart is called off");
  await pass(40_000);
  assert.equal(await second, "2 set up");
  assert.equal(slow.begunMs.length, 1);
});

test("a canceled set-up that does not end holds up the next one, and the teardown", async () => {
  const hung = Promise.withResolvers<void>();
  slow.work = () => hung.promise;
  const operation = new AbortController();
  const first = wait(pod, operation.signal);
  await pass(1_000);
  operation.abort(new Error("the pod ends"));
  assert.equal(await first, "the pod ends");
  const second = wait();
  let isReleased = false;
  await pass(windowMs);
  assert.match(await second, /^unable to attach or mount volumes: unmounted volumes=\[far settings\]/);
  const release = volumes.manager.release(podRef(pod), { cause }, signal).then(() => (isReleased = true));
  await pass(1_000);
  assert.deepEqual([slow.begunMs.length, isReleased], [1, false]);
  hung.resolve();
  await pass(0);
  await release;
  assert.equal(slow.begunMs.length, 1);
});

test("a set-up that does not end is named while its pod's volumes wait to be removed", async () => {
  const hung = Promise.withResolvers<void>();
  slow.work = () => hung.promise;
  const operation = new AbortController();
  const waiting = wait(pod, operation.signal);
  await pass(1_000);
  operation.abort(new Error("the pod ends"));
  await waiting;
  const release = volumes.manager.release(podRef(pod), { cause }, signal);
  await pass(30_000);
  const silent = "volume far (d.example.org) does not answer: its set-up has not returned within 30 s";
  const told = (): string[] =>
    volumes.entries.flatMap(({ what, message }) => (what.startsWith("VolumeSil") ? [what, message] : []));
  assert.deepEqual(told(), ["VolumeSilent", silent]);
  hung.resolve();
  await pass(0);
  await release;
  assert.deepEqual(told().slice(2), ["VolumeSilenceOver", silent]);
});

for (const isHanging of [false, true]) {
  test(`the end of podwright waits for a set-up that ${isHanging ? "hangs no longer than 5 s" : "nothing waits for"}`, async () => {
    const ending = Promise.withResolvers<void>();
    slow.work = () => ending.promise;
    const operation = new AbortController();
    const waiting = wait(pod, operation.signal);
    await pass(1_000);
    operation.abort(new Error("the pod ends"));
    await waiting;
    let isClosed = false;
    const closed = volumes.manager.close().then(() => (isClosed = true));
    await pass(4_000);
    assert.equal(isClosed, false);
    if (isHanging) await pass(1_000);
    else ending.resolve();
    await pass(0);
    await closed;
    const { length } = volumes.entries;
    if (!isHanging) await pass(60_000);
    assert.equal(volumes.entries.length, length);
  });
}

test("a pod's other volumes are refreshed while one is set up", async () => {
  slow.work = endsAt(1_000_000);
  const waiting = wait();
  await pass(windowMs);
  await waiting;
  volumes.objects.setConfigMap("settings", { level: "info" });
  assert.equal(await volumes.manager.refresh(pod, cause, signal), true);
  const path = `${root}/pods/u/volumes/kubernetes.io~configmap/settings/level`;
  assert.equal(new TextDecoder().decode(await files.read(path, 100)), "info");
  assert.equal(slow.begunMs.length, 1, "and that one is left to its set-up");
});

test("a pod's other volumes are refreshed while one of them waits for an object beside a slow set-up", async () => {
  const waits = podOfVolumes([...(pod.spec.volumes ?? []), { name: "late", configMap: { name: "late" } }]);
  slow.work = endsAt(300_000);
  const path = `${root}/pods/u/volumes/kubernetes.io~configmap/settings/level`;
  const level = async (): Promise<string> => new TextDecoder().decode(await files.read(path, 100));
  for (const text of ["info", "warn"]) {
    const waiting = wait(waits);
    await pass(windowMs);
    assert.match(await waiting, /^unable to attach or mount volumes: unmounted volumes=\[far late\]/);
    volumes.objects.setConfigMap("settings", { level: text });
    await volumes.manager.refresh(waits, cause, signal);
    assert.equal(await level(), text);
  }
  volumes.objects.setConfigMap("late", { is: "there" });
  const waiting = wait(waits);
  await pass(300_000 - 2 * windowMs);
  assert.equal(await waiting, "3 set up");
  assert.equal(slow.begunMs.length, 1);
});

test("a pod is rejected for a driver's limit also when nothing waits for its volumes", async () => {
  slow.attachment = async (_spec, running) => {
    await endsAt(windowMs + 1_000)(running);
    throw new AttachLimitError("too many");
  };
  const waiting = wait();
  await pass(windowMs);
  await waiting;
  assert.deepEqual(rejected, []);
  await pass(1_000);
  assert.deepEqual(rejected, ["VolumeAttachmentLimitExceeded"]);
});
