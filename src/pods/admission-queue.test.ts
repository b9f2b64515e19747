import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MetadataParts, podWith } from "../../test/support/pods.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { decideAdmission } from "./admission.ts";
import { AdmissionQueue } from "./admission-queue.ts";
import type { Ending } from "./ending.ts";
import type { PodChange } from "./pod-change.ts";
import type { PodWorker } from "./pod-worker.ts";

const cause = { code: "ManifestAdded", message: "it came" } as const;

function asking(name: string, cpu: string, more: MetadataParts = {}, priority = 0): Pod {
  const containers = [{ name: "c", resources: { requests: { cpu } } }];
  return podWith({ containers, priority }, { name, uid: name, ...more });
}
const add = (pod: Pod): PodChange => ({ op: "add", pod, cause });

/** A pod of the node: its worker's part that counts here. */
class FakeWorker {
  readonly pod: Pod;
  state = { kind: "syncing" };
  forgotten = false;
  stoppedFor: Cause | undefined;

  get uid(): string {
    return this.pod.metadata.uid;
  }

  constructor(pod: Pod) {
    this.pod = pod;
  }

  terminate({ cause: why }: Ending): void {
    this.state = { kind: "terminating" };
    this.stoppedFor = why;
  }
}

/** A node with two processors. */
class World {
  readonly journal = new MemoryRecorder();
  readonly workers = new Map<string, FakeWorker>();
  readonly refused: string[] = [];
  /** Allocations of earlier runs, by name, if they differ from the pod's request. */
  readonly granted = new Map<string, Pod>();
  /** Pods that come back under the UID of one that is still ending. */
  readonly returning = new Map<string, Pod>();
  /** Pods that run and that no source has named yet. */
  unclaimed: readonly Pod[] = [];
  /** Who waited, by name, when the last pod was passed on. */
  waitingAtNext: readonly string[] = [];
  labels: Readonly<Record<string, string>> = {};
  looks = 0;
  readonly queue = new AdmissionQueue({
    workers: {
      get: (uid) => this.workers.get(uid) as unknown as PodWorker | undefined,
      list: () => [...this.workers.values()] as unknown as PodWorker[],
      returning: (uid) => {
        const pod = this.returning.get(uid);
        return pod && { pod, letIn: pod, cause };
      },
    },
    killer: {
      kill: async ({ metadata }, ending) => {
        this.workers.get(metadata.uid)?.terminate(ending);
        return await Promise.resolve(true);
      },
    },
    unclaimed: () => this.unclaimed,
    journal: this.journal,
    granted: (pod) => this.granted.get(pod.metadata.name) ?? pod,
    decide: (pod, holders) => {
      const node = { allocatable: { cpu: "2" }, place: { name: "n", labels: this.labels, taints: [] } };
      return decideAdmission(pod, { before: [], after: [] }, { holders, node });
    },
    refreshPlace: async () => {
      this.looks++;
      await Promise.resolve();
      this.labels = { zone: "a" };
    },
    next: ({ pod }, rejection) => {
      this.waitingAtNext = this.queue.pods.map(({ metadata }) => metadata.name);
      if (rejection === undefined) this.workers.set(pod.metadata.uid, new FakeWorker(pod));
      else this.refused.push(`${pod.metadata.name}: ${rejection.reason}`);
    },
  });

  run(...pods: readonly Pod[]): this {
    for (const pod of pods) this.queue.add(add(pod));
    return this;
  }

  stop(uid: string): void {
    const worker = this.workers.get(uid);
    if (worker !== undefined) worker.state = { kind: "terminating" };
  }

  gone(uid: string): void {
    this.workers.delete(uid);
    this.queue.retry();
  }

  get names(): string[] {
    return [...this.workers.keys()];
  }
}

describe("a pod that has room only when another has stopped", () => {
  test("judges a pod by its allocation of an earlier run, not by its manifest's resize", () => {
    const world = new World();
    world.granted.set("a", asking("a", "1"));
    world.run(asking("a", "3"));
    assert.deepEqual([...world.workers.keys()], ["a"]);
    assert.deepEqual(world.refused, []);
  });

  test("waits for a running pod that no source has reported yet, until it is reported or stopped", () => {
    for (const isNamed of [true, false]) {
      const world = new World();
      world.unclaimed = [asking("runs", "2")];
      world.run(asking("new", "1"));
      assert.deepEqual([world.names, world.refused], [[], []]);
      world.unclaimed = [];
      if (isNamed) world.workers.set("runs", new FakeWorker(asking("runs", "2")));
      world.queue.retry();
      assert.deepEqual(world.names, isNamed ? ["runs"] : ["new"]);
      assert.deepEqual(world.refused, isNamed ? ["new: OutOfcpu"] : []);
    }
  });

  test("judges a pod that returns with its UID by its manifest, not by its predecessor's allocation", () => {
    const world = new World().run(asking("a", "500m"), asking("b", "500m"));
    world.granted.set("a", asking("a", "500m"));
    world.stop("a");
    world.run(asking("a", "1600m"));
    assert.deepEqual(world.refused, ["a: OutOfcpu"]);
    world.returning.set("a", asking("a", "1"));
    world.run(asking("c", "800m"), asking("d", "500m"));
    assert.deepEqual(world.refused, ["a: OutOfcpu", "c: OutOfcpu"]);
  });

  test("waits for that, reported once, and later pods find its share taken", () => {
    const world = new World().run(asking("a", "1500m"));
    world.stop("a");
    world.run(asking("b", "1"), asking("c", "1500m"), asking("d", "100m"));
    world.queue.retry();
    assert.deepEqual(world.names, ["a"]);
    assert.deepEqual(world.refused, ["c: OutOfcpu"]);
    assert.deepEqual(world.journal.messages("AdmissionWaits").slice(0, 1), [
      "the pod waits for other pods to stop: Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000",
    ]);
    assert.equal(world.journal.messages("AdmissionWaits").length, 2);
    world.gone("a");
    assert.deepEqual(world.names, ["b", "d"]);
  });

  test("may change or be removed while it waits", () => {
    const world = new World().run(asking("a", "2"));
    world.stop("a");
    world.run(asking("b", "1"), asking("c", "1"));
    assert.equal(world.queue.update({ op: "update", pod: asking("b", "500m"), cause }), true);
    assert.equal(world.queue.update({ op: "remove", pod: asking("c", "1"), cause }), true);
    assert.equal(world.queue.update({ op: "remove", pod: asking("a", "2"), cause }), false);
    world.gone("a");
    assert.deepEqual(world.names, ["b"]);
    assert.deepEqual(world.workers.get("b")?.pod.spec.containers[0]?.resources?.requests, { cpu: "500m" });
  });

  test("counts as waiting until it has its share, so that no resize takes that", () => {
    const world = new World().run(asking("a", "2"));
    world.stop("a");
    world.run(asking("b", "1"), asking("c", "1"));
    world.gone("a");
    assert.deepEqual([world.names, world.waitingAtNext], [["b", "c"], ["c"]]);
    assert.deepEqual(world.queue.pods, []);
  });

  test("that is deleted at the API server is passed on to be removed", () => {
    const world = new World().run(asking("a", "2"));
    world.stop("a");
    world.run(asking("b", "1"));
    const deleted = asking("b", "1", { deletionTimestamp: "2026-11-20T14:02:00Z" });
    assert.equal(world.queue.update({ op: "update", pod: deleted, cause }), false);
    world.gone("a");
    assert.deepEqual(world.names, [], "it does not come to life later");
  });

  test("with its own name is passed on: workers keep their order", () => {
    const world = new World().run(asking("a", "2"));
    world.stop("a");
    world.run(asking("a", "2", { uid: "a2" }));
    assert.deepEqual(world.names, ["a", "a2"]);
  });
});

test("for a critical pod others are preempted with their own grace period, and it is admitted when they are gone", () => {
  const world = new World().run(asking("a", "1"), asking("b", "1"));
  world.run(asking("critical", "500m", {}, 2_000_000_000));
  assert.deepEqual(world.names, ["a", "b"]);
  const [victim, ...others] = [...world.workers.values()].filter(({ stoppedFor }) => stoppedFor !== undefined);
  assert.equal(others.length, 0);
  assert.ok(victim?.stoppedFor);
  const { code, message, because } = victim.stoppedFor;
  assert.deepEqual([code, message], ["Preempting", "Preempted in order to admit critical pod"]);
  assert.equal(because?.message, "making room for critical pod ns/critical");
  assert.equal(world.journal.messages("Preempting").length, 1);
  world.gone(victim.pod.metadata.uid);
  assert.ok(world.names.includes("critical"));
});

test("a critical pod takes the room that others wait for: none of these is preempted, and they keep waiting", () => {
  const world = new World().run(asking("a", "1"), asking("b", "1"));
  world.stop("a");
  world.run(asking("waits", "800m"), asking("low", "200m", {}, 2_000_000_000), asking("c", "100m"));
  world.run(asking("high", "900m", {}, 2_000_001_000));
  assert.deepEqual(world.journal.messages("Preempting"), []);
  assert.equal(world.journal.messages("AdmissionWaits").length, 3);
  assert.deepEqual(world.refused, ["c: OutOfcpu"]);
  world.gone("a");
  assert.deepEqual(world.names, ["b", "high"]);
  assert.deepEqual(world.refused, ["c: OutOfcpu", "waits: OutOfcpu"]);
  // The lower of the two critical ones continues to preempt for itself.
  assert.equal(world.workers.get("b")?.stoppedFor?.because?.message, "making room for critical pod ns/low");
  world.gone("b");
  assert.deepEqual(world.names, ["high", "low"]);
});

test("a pod is rejected for node labels only after they were read again", async () => {
  const world = new World();
  const selecting = (name: string, zone: string): Pod =>
    podWith({ containers: [{ name: "c" }], nodeSelector: { zone } }, { name, uid: name });
  world.run(selecting("right", "a"), selecting("wrong", "b"));
  assert.deepEqual([world.names, world.refused], [[], []]);
  await new Promise(setImmediate);
  assert.deepEqual([world.names, world.refused], [["right"], ["wrong: NodeAffinity"]]);
  assert.equal(world.looks, 2);
});
