import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod, testStatus } from "../../test/support/observed.ts";
import type { Container } from "../api/container.ts";
import { containerId, podUid } from "../base/ids.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { keptSpec } from "../runtime/layout/kept-spec.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { ActiveDeadline, overdue } from "./active-deadline.ts";
import { completed, type LastingEnding, resumed, unwanted } from "./ending.ts";
import { PodEndings } from "./pod-endings.ts";
import { PodCheckpoint } from "./pod-checkpoint.ts";
import { preempted, preemptionDisruption } from "./preemption.ts";
import { refused, rejection } from "./rejection.ts";
import { RestartTimes } from "./restart-times.ts";

const wallMs = 1_700_000_000_000;
const node = { rootDirectory: "/kubelet" };
const web: Container = { name: "web", image: "web:1" };
const removed = unwanted({ code: "ManifestRemoved", message: "its manifest was removed" }, 30);
const path = "/kubelet/pods/uid-1/podwright.json";

class Scene {
  readonly world = new SimClock(wallMs);
  readonly files = new MemoryFiles(this.world.incarnation());
  readonly warnings: string[] = [];

  /** One life of podwright. */
  async life() {
    const life = this.unread();
    await life.checkpoint.load();
    return life;
  }

  unread() {
    const clock = this.world.incarnation();
    const [deadline, restarts] = [new ActiveDeadline(clock), new RestartTimes(clock, 300_000)];
    const log = { warn: (message: string) => void this.warnings.push(message) };
    const checkpoint = new PodCheckpoint({ files: this.files, node, log }, podUid("uid-1"), deadline, restarts);
    return { clock, deadline, restarts, checkpoint };
  }

  /** Why the pod is over, as a life that begins now knows it. */
  async end(): Promise<LastingEnding | undefined> {
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

test("a pod's start time and crash-loop back-offs survive a restart of podwright", async () => {
  const scene = new Scene();
  const first = await scene.life();
  first.deadline.endsAt(testPod(), testStatus([]));
  const exitAt = (ms: number) => testContainer({ name: "web", state: "exited", finishedAt: BigInt(ms) * 1_000_000n });
  first.restarts.attempted(web, testStatus([], [exitAt(wallMs)]));
  first.restarts.attempted(web, testStatus([], [exitAt(wallMs)]));
  await first.checkpoint.save();
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

test("what was stopped to be restarted is known to the next run, until it is over", async () => {
  const scene = new Scene();
  const stopped = testContainer({ name: "web", state: "exited" });
  const first = await scene.life();
  first.restarts.stopped(stopped.id, { code: "LivenessProbeFailed", message: "its probe failed" });
  await first.checkpoint.save();
  const second = await scene.life();
  const known = second.restarts.restartCause(stopped);
  assert.deepEqual([known?.code, known?.message], ["LivenessProbeFailed", "its probe failed"]);
  second.restarts.observe(testStatus([], [testContainer({ name: "web", id: containerId("next") }), stopped]));
  await second.checkpoint.save();
  assert.equal((await scene.life()).restarts.restartCause(stopped), undefined);
  await first.checkpoint.stopping(undefined, removed);
  assert.equal((await scene.life()).restarts.restartCause(stopped), undefined, "a pod that ends restarts nothing");
});

test("a record of an earlier version, and one with an unknown reason, are read", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  await scene.files.write(path, JSON.stringify({ startedAt: wallMs, backOff: [] }), 0o600);
  assert.equal((await scene.life()).deadline.startedAt, wallMs);
  const stopped = [{ id: "web-id", code: "Whatever", message: "of a later version" }];
  await scene.files.write(path, JSON.stringify({ backOff: [], stopped }), 0o600);
  const cause = (await scene.life()).restarts.restartCause(testContainer({ name: "web", state: "exited" }));
  assert.equal(cause?.code, "UnknownCause");
  assert.deepEqual(scene.warnings, []);
});

test("an unchanged checkpoint is not written again", async () => {
  const scene = new Scene();
  const { deadline, checkpoint } = await scene.life();
  deadline.endsAt(testPod(), testStatus([]));
  await checkpoint.save();
  const { inode } = (await scene.files.stat(path)) ?? {};
  await checkpoint.save();
  await (await scene.life()).checkpoint.save();
  assert.equal((await scene.files.stat(path))?.inode, inode);
});

test("an unreadable or unwritable checkpoint is logged, and starts over", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  await scene.files.write(path, '{"startedAt": "yesterday"}', 0o600);
  const { deadline } = await scene.life();
  assert.equal(deadline.startedAt, undefined);
  assert.deepEqual(scene.warnings, ["cannot read a pod checkpoint"]);
  const other = new Scene();
  await other.files.makeDirectory("/kubelet/pods", 0o750);
  await other.files.write("/kubelet/pods/uid-1", "in the way", 0o600);
  await (await other.life()).checkpoint.save();
  assert.equal(other.warnings.at(-1), "cannot write a pod checkpoint");
});

test("a pod of the API server that stops while the disk is full is unknown to the next run", async () => {
  const scene = new Scene();
  const { checkpoint } = await scene.life();
  const pod = testPod();
  const ofApi = {
    ...pod,
    metadata: { ...pod.metadata, uid: podUid("uid-1"), annotations: { [Annotation.configSource]: "api" } },
  };
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  await checkpoint.save(ofApi);
  assert.ok(await keptSpec(scene.files, node, podUid("uid-1")));
  scene.files.writeAtomic = () => Promise.reject(new Error("no space left on device"));
  await checkpoint.stopping(ofApi, removed);
  assert.equal(await keptSpec(scene.files, node, podUid("uid-1")), undefined);
  assert.equal(scene.warnings.length, 1);
});

test("writes are serialized: the last state wins, and an unchanged one is written once", async () => {
  const scene = new Scene();
  const { deadline, checkpoint } = await scene.life();
  deadline.endsAt(testPod(), testStatus([]));
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  const write = scene.files.writeAtomic.bind(scene.files);
  const { promise: free, resolve: release } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begins } = Promise.withResolvers<void>();
  let writes = 0;
  scene.files.writeAtomic = async (...what) => {
    begins();
    if (writes++ === 0) await free;
    await write(...what);
  };
  const all: Promise<unknown>[] = [checkpoint.save()];
  await begun;
  all.push(checkpoint.stopping(undefined, removed), checkpoint.stopping(undefined, removed));
  release();
  await Promise.all(all);
  assert.equal(writes, 2);
  const kept = new TextDecoder().decode(await scene.files.read(path, 1000));
  assert.equal((JSON.parse(kept) as { ends?: boolean }).ends, true);
});

test("a pod that the node ended stays ended in the next run, while it is desired", async () => {
  const scene = new Scene();
  assert.equal(await scene.end(), undefined);
  const first = await scene.life();
  first.deadline.endsAt(testPod(), testStatus([]));
  for (const ending of [removed, refused(rejection("OutOfcpu", "too little of it"), 1), undefined]) {
    await first.checkpoint.stopping(undefined, ending);
    assert.equal(await scene.end(), undefined);
  }
  await first.checkpoint.stopping(undefined, preempted(testPod(), 1, removed.cause));
  const kept = {
    cause: { code: "Preempting", message: "Preempted in order to admit critical pod" },
    ...{ outcome: "cutShort", disruption: "Pod was preempted by Kubelet to accommodate a critical pod." },
    graceSeconds: 30,
  };
  assert.deepEqual(await scene.end(), kept);
  const second = await scene.life();
  await second.checkpoint.save();
  assert.deepEqual(await scene.end(), kept);
  assert.equal(second.deadline.startedAt, wallMs);
  await second.checkpoint.stopping(undefined, removed);
  assert.equal(await scene.end(), undefined);
});

test("a pod that the node ended with a shorter grace period than its own keeps that in the next run", async () => {
  const scene = new Scene();
  const { checkpoint } = await scene.life();
  await checkpoint.stopping(undefined, { ...preempted(testPod(), 1, removed.cause), graceSeconds: 1 });
  const ending = await scene.end();
  assert.ok(ending !== undefined);
  assert.equal(resumed(ending, removed.cause, 30).graceSeconds, 1);
  assert.equal(resumed({ ...ending, graceSeconds: 60 }, removed.cause, 30).graceSeconds, 30);
  const { graceSeconds: _unknown, ...earlier } = ending;
  assert.equal(resumed(earlier, removed.cause, 30).graceSeconds, 30, "of an earlier version");
});

test("the phase of a completed pod is kept, so that the next run needs none of its containers", async () => {
  const scene = new Scene();
  const { checkpoint } = await scene.life();
  const cause = { code: "PodCompleted", message: "all containers have exited and none is restarted" } as const;
  await checkpoint.stopping(undefined, completed(cause, 30));
  checkpoint.stopped("Succeeded");
  await checkpoint.save();
  const kept = { cause, outcome: "asContainers", disruption: undefined, graceSeconds: 30, endedPhase: "Succeeded" };
  assert.deepEqual(await scene.end(), kept);
  const ending = await scene.end();
  assert.ok(ending !== undefined);
  const next = await scene.life();
  await next.checkpoint.stopping(undefined, resumed(ending, removed.cause, 30));
  next.checkpoint.stopped("Running");
  await next.checkpoint.save();
  assert.equal((await scene.end())?.endedPhase, "Succeeded");
});

test("so is that of a pod that the node cut short, but not of one that has failed in any case", async () => {
  for (const [ending, phase] of [
    [preempted(testPod(), 1, removed.cause), "Succeeded"],
    [overdue(testPod()), undefined],
  ] as const) {
    const scene = new Scene();
    const { checkpoint } = await scene.life();
    await checkpoint.stopping(undefined, ending);
    checkpoint.stopped("Succeeded");
    await checkpoint.save();
    assert.equal((await scene.end())?.endedPhase, phase);
  }
});

test("an ending stored by an earlier version with only its reason keeps its meaning", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  const after = async (code: string) => {
    await scene.files.write(path, JSON.stringify({ backOff: [], ends: true, end: { code, message: "" } }), 0o600);
    return await scene.end();
  };
  const ending = (code: string, outcome: string, disruption?: string) => {
    return { cause: { code, message: "" }, outcome, disruption };
  };
  assert.deepEqual(await after("PodCompleted"), ending("PodCompleted", "asContainers"));
  assert.deepEqual(await after("InitContainerFailed"), ending("InitContainerFailed", "asContainers"));
  assert.deepEqual(await after("DeadlineExceeded"), ending("DeadlineExceeded", "failed"));
  assert.deepEqual(await after("Preempting"), ending("Preempting", "failed", preemptionDisruption));
});

test("changes before earlier checkpoints are read do not overwrite them", async () => {
  const scene = new Scene();
  const { deadline, checkpoint } = await scene.life();
  deadline.endsAt(testPod(), testStatus([]));
  await checkpoint.stopping(undefined, overdue(testPod()));
  const second = await scene.life();
  assert.equal(second.deadline.startedAt, wallMs);
  const { deadline: third, checkpoint: next } = scene.unread();
  const loaded = next.load();
  await Promise.all([next.stopping(undefined, overdue(testPod())), loaded]);
  assert.equal(third.startedAt, wallMs);
  assert.equal((await scene.life()).deadline.startedAt, wallMs);
});

test("a pod with an unreadable checkpoint keeps running, which is logged", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory("/kubelet/pods/uid-1", 0o750);
  await scene.files.write(path, '{"end": 1}', 0o600);
  assert.equal(await scene.end(), undefined);
  scene.files.list = () => Promise.reject(new Error("input/output error"));
  assert.equal(await scene.end(), undefined);
  assert.deepEqual(scene.warnings, [
    "cannot read how a pod ended in an earlier run",
    "cannot read which pods ended in an earlier run",
  ]);
});
