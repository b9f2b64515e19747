import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import type { Ending } from "./ending.ts";
import { PodKiller } from "./pod-killer.ts";
import type { PodWorker } from "./pod-worker.ts";

const cause = { code: "Evicted", message: "The node was low on resource: memory." } as const;
const ending = (graceSeconds: number): Ending => ({ cause, outcome: "failed", lasts: true, graceSeconds });
const pod = podWith({ containers: [{ name: "c" }] }, { name: "a", uid: "a" });
const overdue = "Container runtime did not kill the pod within specified grace period.";

class Scene {
  readonly journal = new MemoryRecorder();
  readonly killed: Ending[] = [];
  state: string | undefined = "syncing";
  nowMs = 0;
  readonly killer = new PodKiller({
    workers: {
      get: () => (this.state === undefined ? undefined : ({ state: { kind: this.state } } as unknown as PodWorker)),
      terminate: (_uid, by) => {
        this.killed.push(by);
        this.state = "terminating";
      },
    },
    journal: this.journal,
    now: () => this.nowMs,
  });

  /** The pods reported as overdue by then. */
  at(atMs: number): readonly string[] {
    this.nowMs = atMs;
    this.killer.look();
    return this.journal.messages("ExceededGracePeriod");
  }
}

test("the caller of a kill learns that the pod has stopped or is gone", async () => {
  for (const after of ["terminated", undefined]) {
    const scene = new Scene();
    const kill = scene.killer.kill(pod, ending(30));
    assert.deepEqual(scene.killed, [ending(30)]);
    assert.deepEqual(scene.at(1000), []);
    scene.state = after;
    assert.deepEqual(scene.at(60_000), []);
    assert.equal(await kill, true);
  }
});

test("a pod that has not stopped within 1.5 times its grace period is reported once, and its caller waits no longer", async () => {
  const scene = new Scene();
  const kill = scene.killer.kill(pod, ending(30));
  assert.deepEqual(scene.at(44_999), []);
  assert.deepEqual(scene.at(45_000), [overdue]);
  assert.equal(await kill, false);
  assert.deepEqual(scene.at(60_000), [overdue]);
});

test("the runtime has at least 10 s, however short the grace period", () => {
  const scene = new Scene();
  void scene.killer.kill(pod, ending(1));
  assert.deepEqual(scene.at(9999), []);
  assert.deepEqual(scene.at(10_000), [overdue]);
});

test("the later of two endings of a pod counts", async () => {
  const scene = new Scene();
  const first = scene.killer.kill(pod, ending(30));
  const second = scene.killer.kill(pod, ending(1));
  assert.equal(await first, false);
  assert.deepEqual(scene.at(10_000), [overdue]);
  assert.equal(await second, false);
});
