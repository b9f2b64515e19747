import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/eviction.ts";
import type { Cause } from "../journal/entry.ts";
import { type Ending, resumed, unwanted } from "../pods/ending.ts";
import { refused } from "../pods/rejection.ts";
import type { WorkerState } from "../pods/worker-state.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { evicted } from "./evicted.ts";
import { type EvictionPod, Victims } from "./victims.ts";

const cause: Cause = { code: "PodEvicted", message: "ranked 1 of 2" };
const eviction = evicted("The node was low on resource: memory. ", cause, 1, true);
const none = { sandboxes: [], containers: [] } as unknown as PodStatus;

function podIn(state: WorkerState, status?: EvictionPod["status"]): EvictionPod {
  const pod = podWith("web");
  return { view: { ref: podRef(pod), pod, state, status: none }, status, forgotten: false };
}

function stopping(ending: Ending, killAtMs = 1000): WorkerState {
  return { kind: "terminating", ending, killAtMs };
}

function isPending(pod: EvictionPod, nowMs = 0): boolean {
  return new Victims(() => [pod], 30).look(nowMs).isPending;
}

test("an evicted pod is waited for until it has released its resources", () => {
  const stopped = { kind: "terminated", ending: eviction, killAtMs: 1000, recorded: true } as const;
  assert.deepEqual(
    [
      isPending(podIn(stopping(eviction))),
      isPending(podIn({ ...stopped, released: false })),
      isPending(podIn({ ...stopped, released: true })),
      isPending(podIn({ kind: "finished" })),
      isPending(podIn({ kind: "syncing" })),
    ],
    [true, true, false, false, false],
  );
});

test("so is one that an earlier run evicted, however the next one knows of that", () => {
  const added: Cause = { code: "PodAdded", message: "a source has the pod" };
  const orphaned: Cause = { code: "OrphanedPod", message: "no source has this pod", because: eviction.cause };
  const ended = unwanted({ code: "PodHadEnded", message: "the pod had already ended", because: added }, 30);
  assert.equal(isPending(podIn(stopping(resumed(eviction, added, 30)))), true);
  assert.equal(isPending(podIn(stopping(unwanted(orphaned, 30)))), true);
  assert.equal(isPending(podIn(stopping(ended), { phase: "Failed", reason: "Evicted" })), true);
  assert.equal(isPending(podIn(stopping(ended), { phase: "Failed", reason: "DeadlineExceeded" })), false);
  assert.equal(isPending(podIn(stopping(ended))), false);
});

test("a pod that was rejected under pressure held nothing", () => {
  const rejected = refused({ reason: "Evicted", message: "The node had condition: [DiskPressure]. " }, 1);
  assert.equal(isPending(podIn(stopping(rejected), { phase: "Failed", reason: "Evicted" })), false);
});

test("the wait ends half a minute after the grace period, which is told once, and not sooner if that is shortened", () => {
  let pod = podIn(stopping(eviction, 20_000));
  const victims = new Victims(() => [pod], 30);
  victims.look(0);
  pod = podIn(stopping(eviction, 2000));
  assert.deepEqual(victims.look(49_999), { isPending: true, overdue: [] });
  assert.deepEqual(victims.look(50_000), { isPending: false, overdue: ["default/web"] });
  assert.deepEqual(victims.look(50_001), { isPending: false, overdue: [] });
});
