import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import { Emitter } from "../base/emitter.ts";
import type { PodUid } from "../base/ids.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { StatusManager } from "../status/status-manager.ts";
import { watchPods } from "./watch-pods.ts";

const cause = { code: "Resync", message: "the test says so" } as const;
const pending: PodStatus = { phase: "Pending" };
const running: PodStatus = { phase: "Running" };
const succeeded: PodStatus = { phase: "Succeeded" };

class World {
  readonly statuses = new StatusManager({ record: () => 0 });
  readonly ended = new Emitter<PodUid>();
  readonly gone = new Emitter<PodUid>();
  readonly pods = new Map<PodUid, Pod>();

  watch(): string[] {
    const seen: string[] = [];
    const refs = [...this.pods.values()].map(podRef);
    const workers = { onEnded: (listener: (uid: PodUid) => void) => this.ended.on(listener) };
    const { statuses, gone, pods } = this;
    watchPods({ statuses, workers, pod: (uid) => pods.get(uid), refs, gone }, (news) => {
      const uid = news.type === "deleted" ? news.ref.uid : news.pod.pod.metadata.uid;
      seen.push(`${news.type} ${uid}${news.type === "deleted" ? "" : ` ${news.pod.status?.phase}`}`);
    });
    return seen;
  }

  add(uid: string, metadata: Partial<Pod["metadata"]> = {}): Pod {
    const pod = podWith({}, { ...metadata, name: uid, uid });
    this.pods.set(pod.metadata.uid, pod);
    return pod;
  }

  end(pod: Pod): void {
    this.ended.emit(pod.metadata.uid);
  }

  remove({ metadata: { uid } }: Pod): void {
    this.pods.delete(uid);
    this.statuses.remove(uid);
    this.gone.emit(uid);
  }
}

test("a pod of the API server is added with the kubelet's first status, whatever the server had before", () => {
  const world = new World();
  const seen = world.watch();
  const pod = world.add("new");
  world.statuses.seed(pod.metadata.uid, pending);
  world.statuses.set(pod, { ...pending, startTime: "2026-01-01T00:00:00Z" }, cause);
  world.statuses.set(pod, { ...running, startTime: "2026-01-01T00:00:00Z" }, cause);
  world.remove(pod);
  assert.deepEqual(seen, ["added new Pending", "modified new Running", "deleted new"]);
});

test("a pod whose status is the one of an earlier run is added once", () => {
  const world = new World();
  const seen = world.watch();
  const pod = world.add("same");
  world.statuses.seed(pod.metadata.uid, running);
  for (let count = 0; count < 3; count++) world.statuses.set(pod, { ...running }, cause);
  world.statuses.set(pod, succeeded, cause);
  assert.deepEqual(seen, ["added same Running", "modified same Succeeded"]);
});

test("a pod that the watcher has already, or that is being deleted, is not added", () => {
  const world = new World();
  const listed = world.add("listed");
  const seen = world.watch();
  const deleted = world.add("deleted", { deletionTimestamp: "2026-01-01T00:00:00Z" });
  world.statuses.set(listed, pending, cause);
  world.statuses.set(deleted, running, cause);
  assert.deepEqual(seen, ["modified listed Pending", "modified deleted Running"]);
});

test("a pod is deleted once it has ended and released what it held, and nothing is told of it afterwards", () => {
  const world = new World();
  const seen = world.watch();
  const job = world.add("job");
  world.statuses.set(job, running, cause);
  world.statuses.set(job, succeeded, cause);
  world.end(job);
  const later = world.watch();
  world.statuses.set(job, { ...succeeded, message: "more" }, cause);
  world.remove(job);
  assert.deepEqual(seen, ["added job Running", "modified job Succeeded", "deleted job"]);
  // Who came later listed it, and learns when it is gone.
  assert.deepEqual(later, ["modified job Succeeded", "deleted job"]);
});

test("a pod that returns under the UID of one that has ended is added again", () => {
  const world = new World();
  const seen = world.watch();
  const first = world.add("static");
  world.statuses.set(first, succeeded, cause);
  world.end(first);
  world.remove(first);
  const second = world.add("static");
  world.statuses.set(second, pending, cause);
  assert.deepEqual(seen, ["added static Succeeded", "deleted static", "added static Pending"]);
});
