import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod, testStatus } from "../../test/support/observed.ts";
import type { Container } from "../api/container.ts";
import { podUid } from "../base/ids.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { keptSpec } from "../runtime/layout/kept-spec.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { ActiveDeadline, deadlineExceeded } from "./active-deadline.ts";
import { PodEndings } from "./pod-endings.ts";
import { PodRecord } from "./pod-record.ts";
import { RestartTimes } from "./restart-times.ts";

const wallMs = 1_700_000_000_000;
const node = { rootDirectory: "/kubelet" };
const web: Container = { name: "web", image: "web:1" };
const removed = { code: "ManifestRemoved", message: "its manifest was removed" } as const;
const path = "/kubelet/pods/uid-1/podwright.json";

class Scene {
  readonly world = new SimClock(wallMs);
  readonly files = new MemoryFiles(this.world.incarnation());
  readonly warnings: string[] = [];

  /** One life of podwright. */
  async life() {
    const life = this.unread();
    await life.record.load();
    return life;
  }

  unread() {
    const clock = this.world.incarnation();
    const [deadline, restarts] = [new ActiveDeadline(clock), new RestartTimes(clock, 300_000)];
    const log = { warn: (message: string) => void this.warnings.push(message) };
    const record = new PodRecord({ files: this.files, node, log }, podUid("uid-1"), deadline, restarts);
    return { clock, deadline, restarts, record };
  }

  /** Why the pod is over, as a life that begins now knows it. */
  async end(): Promise<unknown> {
    const log = { warn: (message: string) => void this.warnings.push(message) };
    const endings = new PodEndings({ files: this.files, node, log });
    await endings.load();
    const end = endings.take(podUid("uid-1"));
    assert.equal(endings.take(podUid("uid-1")), undefined);
    return end;
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms);
  }
}

test("since when the node has a pod, and its crash-loop back-offs, outlive podwright", async () => {
  const scene = new Scene();
  const first = await scene.life();
  first.deadline.endsAt(testPod(), testStatus([]));
  const exitAt = (ms: number) => testContainer({ name: "web", state: "exited", finishedAt: BigInt(ms) * 1_000_000n });
  first.restarts.attempted(web, testStatus([], [exitAt(wallMs)]));
  first.restarts.attempted(web, testStatus([], [exitAt(wallMs)]));
  await first.record.save();
  assert.equal((await scene.files.stat(path))?.mode, 0o600);
  await scene.pass(30_000);
  const second = await scene.life();
  const exited = exitAt(second.clock.now());
  assert.equal(second.restarts.endsAt(web, exited), second.clock.monotonic() + 20_000);
  second.restarts.attempted(web, testStatus([], [exited]));
  assert.equal(second.restarts.delayMs(web), 40_000);
  assert.equal(second.deadline.startedAt, wallMs);
  await scene.pass(700_000);
  const third = await scene.life();
  assert.equal(third.restarts.endsAt(web, exitAt(third.clock.now())), undefined, "expired, as it would have otherwise");
});

test("what has not changed is not written again", async () => {
  const scene = new Scene();
  const { deadline, record } = await scene.life();
  deadline.endsAt(testPod(), testStatus([]));
  await record.save();
  const { inode } = (await scene.files.stat(path)) ?? {};
  await record.save();
  await (await scene.life()).record.save();
  assert.equal((await scene.files.stat(path))?.inode, inode);
});

test("what can't be read or written is said, and starts over", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  await scene.files.write(path, '{"startedAt": "yesterday"}', 0o600);
  const { deadline } = await scene.life();
  assert.equal(deadline.startedAt, undefined);
  assert.deepEqual(scene.warnings, ["what was remembered of a pod can't be read"]);
  const other = new Scene();
  await other.files.makeDirectory("/kubelet/pods", 0o750);
  await other.files.write("/kubelet/pods/uid-1", "in the way", 0o600);
  await (await other.life()).record.save();
  assert.equal(other.warnings.at(-1), "remembering a pod's times failed");
});

test("a pod of the API server that stops while the disk is full is no longer known to the next life", async () => {
  const scene = new Scene();
  const { record } = await scene.life();
  const pod = testPod();
  const ofApi = {
    ...pod,
    metadata: { ...pod.metadata, uid: podUid("uid-1"), annotations: { [Annotation.configSource]: "api" } },
  };
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  await record.save(ofApi);
  assert.ok(await keptSpec(scene.files, node, "uid-1"));
  scene.files.writeAtomic = () => Promise.reject(new Error("no space left on device"));
  await record.stopping(ofApi, removed);
  assert.equal(await keptSpec(scene.files, node, "uid-1"), undefined);
  assert.equal(scene.warnings.length, 1);
});

test("writes follow one another: what is told last stands at the end, and what is told twice is written once", async () => {
  const scene = new Scene();
  const { deadline, record } = await scene.life();
  deadline.endsAt(testPod(), testStatus([]));
  const write = scene.files.writeAtomic.bind(scene.files);
  const { promise: free, resolve: release } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begins } = Promise.withResolvers<void>();
  let writes = 0;
  scene.files.writeAtomic = async (...what) => {
    begins();
    if (writes++ === 0) await free;
    await write(...what);
  };
  const all: Promise<unknown>[] = [record.save()];
  await begun;
  all.push(record.stopping(undefined, removed), record.stopping(undefined, removed));
  release();
  await Promise.all(all);
  assert.equal(writes, 2);
  const kept = new TextDecoder().decode(await scene.files.read(path, 1000));
  assert.equal((JSON.parse(kept) as { ends?: boolean }).ends, true);
});

test("a pod that the node ended for good is over for the next life too, as long as it is wanted", async () => {
  const scene = new Scene();
  assert.equal(await scene.end(), undefined);
  const first = await scene.life();
  first.deadline.endsAt(testPod(), testStatus([]));
  const refused = { code: "OutOfcpu", message: "Pod was rejected: too little of it" } as const;
  for (const cause of [removed, refused]) {
    await first.record.stopping(undefined, cause);
    assert.equal(await scene.end(), undefined, cause.code);
  }
  const [code, message] = ["Preempting", "Preempted in order to admit critical pod"] as const;
  await first.record.stopping(undefined, { code, message, because: refused });
  assert.deepEqual(await scene.end(), { code, message });
  const second = await scene.life();
  await second.record.save();
  assert.deepEqual(await scene.end(), { code, message });
  assert.equal(second.deadline.startedAt, wallMs);
  await second.record.stopping(undefined, removed);
  assert.equal(await scene.end(), undefined);
});

test("what is told before it is known what an earlier life left leaves that as it is", async () => {
  const scene = new Scene();
  const { deadline, record } = await scene.life();
  deadline.endsAt(testPod(), testStatus([]));
  await record.stopping(undefined, deadlineExceeded);
  const second = await scene.life();
  assert.equal(second.deadline.startedAt, wallMs);
  const { deadline: third, record: next } = scene.unread();
  const loaded = next.load();
  await Promise.all([next.stopping(undefined, deadlineExceeded), loaded]);
  assert.equal(third.startedAt, wallMs);
  assert.equal((await scene.life()).deadline.startedAt, wallMs);
});

test("a pod whose record can't be read runs on, and that is said", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  await scene.files.write(path, '{"end": 1}', 0o600);
  assert.equal(await scene.end(), undefined);
  scene.files.list = () => Promise.reject(new Error("input/output error"));
  assert.equal(await scene.end(), undefined);
  assert.deepEqual(scene.warnings, [
    "whether a pod was over before can't be read",
    "which pods were over before can't be read",
  ]);
});
