import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod, testStatus } from "../../test/support/observed.ts";
import type { Container } from "../api/container.ts";
import { podUid } from "../base/ids.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { keptSpec } from "../runtime/kept-spec.ts";
import { Annotation } from "../runtime/labels.ts";
import { ActiveDeadline } from "./active-deadline.ts";
import { PodRecord } from "./pod-record.ts";
import { RestartTimes } from "./restart-times.ts";

const wallMs = 1_700_000_000_000;
const web: Container = { name: "web", image: "web:1" };
const path = "/kubelet/pods/uid-1/podwright.json";

class Scene {
  readonly world = new SimClock(wallMs);
  readonly files = new MemoryFiles(this.world.incarnation());
  readonly warnings: string[] = [];

  /** One life of podwright. */
  async life() {
    const clock = this.world.incarnation();
    const [deadline, restarts] = [new ActiveDeadline(clock), new RestartTimes(clock, 300_000)];
    const log = { warn: (message: string) => void this.warnings.push(message) };
    const node = { rootDirectory: "/kubelet" };
    const record = new PodRecord({ files: this.files, node, log }, podUid("uid-1"), deadline, restarts);
    await record.load();
    return { clock, deadline, restarts, record };
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms);
  }
}

test("since when the node has a pod, and its crash-loop back-offs, outlive podwright", async () => {
  const scene = new Scene();
  const first = await scene.life();
  first.deadline.endsAt(testPod(), testStatus([]));
  const exitAt = (ms: number) => testContainer({ state: "exited", finishedAt: BigInt(ms) * 1_000_000n });
  first.restarts.restarted(web, exitAt(wallMs));
  first.restarts.restarted(web, exitAt(wallMs));
  await first.record.save();
  assert.equal((await scene.files.stat(path))?.mode, 0o600);
  await scene.pass(30_000);
  const second = await scene.life();
  const exited = exitAt(second.clock.now());
  assert.equal(second.restarts.endsAt(web, exited), second.clock.monotonic() + 20_000);
  assert.equal(second.restarts.restarted(web, exited), 40_000);
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
    metadata: { ...pod.metadata, uid: "uid-1", annotations: { [Annotation.configSource]: "api" } },
  };
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  await record.save(ofApi);
  const node = { rootDirectory: "/kubelet" };
  assert.ok(await keptSpec(scene.files, node, "uid-1"));
  scene.files.writeAtomic = () => Promise.reject(new Error("no space left on device"));
  await record.stopping(ofApi);
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
  all.push(record.stopping(undefined), record.stopping(undefined));
  release();
  await Promise.all(all);
  assert.equal(writes, 2);
  const kept = new TextDecoder().decode(await scene.files.read(path, 1000));
  assert.equal((JSON.parse(kept) as { ends?: boolean }).ends, true);
});
