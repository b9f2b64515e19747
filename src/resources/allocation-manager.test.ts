import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import { resizeObjection } from "../pods/admission.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog } from "../sim/machine.ts";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { AllocationManager } from "./allocation-manager.ts";
import { qosClass } from "./qos.ts";
import type { PendingReason } from "./resize-admission.ts";
import { decodeCheckpoint, encodeCheckpoint } from "./resource-checkpoint.ts";
import { ResourceRecord } from "./resource-record.ts";

const cause = { code: "Resync", message: "a test" } as const;

function pod(uid: string, cpu: string, spec: Partial<Pod["spec"]> = {}): Pod {
  return podWith({ containers: [containerWith("c", { cpu, memory: "10Mi" })], ...spec }, { uid, name: uid });
}

const allocatable = { cpu: 4, memory: "1Gi" };

/** A node with 4 CPUs. */
class TestNode {
  readonly world = new SimClock(1_700_000_000_000);
  readonly files: MemoryFiles;
  readonly pods = new Map<string, Pod>();
  readonly over = new Set<string>();
  readonly entries: JournalInput[] = [];
  readonly changed: string[] = [];
  ready = true;
  lastTold: PendingReason | undefined;
  /** What else the node has against a resize. */
  condition: string | undefined;
  manager: AllocationManager;

  constructor() {
    this.files = new MemoryFiles(this.world.incarnation());
    this.manager = this.make();
  }

  make(): AllocationManager {
    const clock = this.world.incarnation();
    const record = (name: string): ResourceRecord => new ResourceRecord(this.files, silentLog, `/root/${name}`);
    const manager = new AllocationManager({
      clock,
      journal: { record: (entry) => this.entries.push(entry) },
      allocated: record("allocated_pods_state"),
      actuated: record("actuated_pods_state"),
      node: { allocatable, swapAccounting: false, cgroupVersion: 2 },
    });
    manager.connect({
      activePods: () => [...this.pods.values()].map((wanted) => this.manager.allocatedPod(wanted)),
      known: (uid) => this.pods.has(uid),
      isOver: (uid) => this.over.has(uid),
      ready: () => this.ready,
      objection: (wanted, granted, others) => {
        const node = { allocatable, place: undefined };
        return this.condition ?? resizeObjection(wanted, granted, others, { before: [], after: [] }, node);
      },
      lastTold: () => this.lastTold,
      changed: (uid) => this.changed.push(uid),
    });
    return manager;
  }

  async start(): Promise<void> {
    await this.files.makeDirectory("/root", 0o700);
    await this.manager.load();
  }

  want(wanted: Pod): void {
    this.pods.set(wanted.metadata.uid, wanted);
    this.manager.wanted(wanted, cause);
  }

  granted(uid: string): unknown {
    const wanted = this.pods.get(uid);
    return wanted && this.manager.allocatedPod(wanted).spec.containers[0]?.resources?.requests?.["cpu"];
  }

  told(): string[] {
    return this.entries.map(({ what, pod: of }) => `${what} ${of?.name}`);
  }
}

test("a pod is allocated its first spec until a change is granted", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("p", "1"));
  assert.equal(node.granted("p"), "1");
  node.want(pod("p", "2"));
  assert.equal(node.granted("p"), "2");
  assert.deepEqual(node.told(), ["ResizeStarted p"]);
  assert.deepEqual(node.changed, ["p"]);
});

test("an allocated pod is the same object until it or its allocation changes, so that nothing is recomputed", async () => {
  const node = new TestNode();
  await node.start();
  const first = pod("a", "1");
  node.want(first);
  const before = node.manager.allocatedPod(first);
  assert.equal(node.manager.allocatedPod(first), before);
  const second = pod("a", "2");
  node.want(second);
  const after = node.manager.allocatedPod(second);
  assert.equal(node.manager.allocatedPod(second), after);
  assert.equal(after.spec.containers[0]?.resources?.requests?.["cpu"], "2");
  assert.notEqual(node.manager.allocatedPod(first), before);
});

test("a pod that is stopping or has ended is granted no resize, and has none pending", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("p", "1"));
  node.over.add("p");
  node.want(pod("p", "2"));
  node.want(pod("p", "5"));
  assert.equal(node.granted("p"), "1");
  assert.equal(node.manager.pending(podUid("p")), undefined);
  assert.deepEqual(node.entries, []);
});

test("a rejected pod holds no resources, and is allocated its current spec when it is admitted", async () => {
  const node = new TestNode();
  await node.start();
  node.over.add("p");
  node.want(pod("p", "3"));
  node.want(pod("p", "2"));
  node.over.delete("p");
  node.want(pod("p", "1"));
  assert.equal(node.granted("p"), "1");
  node.want(pod("other", "1"));
  node.want(pod("other", "3"));
  assert.deepEqual(node.told(), ["ResizeStarted other"]);
});

test("a resize beyond the node's resources is deferred, is reported once, and the pod keeps its allocation", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("p", "1"));
  node.want(pod("p", "5"));
  node.manager.retry(cause);
  assert.equal(node.granted("p"), "1");
  assert.deepEqual(node.manager.pending(podUid("p")), {
    reason: "Deferred",
    message: "Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000",
  });
  assert.deepEqual(node.told(), ["ResizeDeferred p"]);
});

test("a deferred resize shows what is in use now, and is not reported again for it", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("p", "1"));
  node.want(pod("other", "2"));
  node.want(pod("p", "3"));
  node.want(pod("another", "1"));
  node.manager.retry(cause);
  assert.deepEqual(node.manager.pending(podUid("p")), {
    reason: "Deferred",
    message: "Node didn't have enough resource: cpu, requested: 3000, used: 3000, capacity: 4000",
  });
  assert.deepEqual(node.told(), ["ResizeDeferred p"]);
});

test("a resize without room is deferred, and granted when a pod leaves", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("p", "1"));
  node.want(pod("other", "2"));
  node.want(pod("p", "3"));
  assert.deepEqual(node.manager.pending(podUid("p")), {
    reason: "Deferred",
    message: "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
  });
  node.pods.delete("other");
  node.manager.remove(podUid("other"));
  assert.equal(node.granted("p"), "3");
  assert.equal(node.manager.pending(podUid("p")), undefined);
  assert.deepEqual(node.told(), ["ResizeDeferred p", "ResizeStarted p"]);
  assert.equal(node.entries.at(-1)?.data?.["trigger"], "PodsRemoved");
  node.want(pod("p", "4"));
  assert.equal(node.entries.at(-1)?.data?.["trigger"], undefined);
});

test("a reverted resize is no longer pending, and a decrease is granted on a full node", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("p", "2"));
  node.want(pod("other", "2"));
  node.want(pod("p", "3"));
  assert.equal(node.manager.pending(podUid("p"))?.reason, "Deferred");
  node.want(pod("p", "2"));
  assert.equal(node.manager.pending(podUid("p")), undefined);
  node.want(pod("p", "1500m"));
  assert.equal(node.granted("p"), "1500m");
});

test("pending resizes are granted by priority", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("low", "1"));
  node.want(pod("high", "1", { priority: 10 }));
  node.want(pod("other", "2"));
  node.want(pod("low", "2"));
  node.want(pod("high", "2", { priority: 10 }));
  node.want(pod("other", "1"));
  assert.deepEqual([node.granted("low"), node.granted("high")], ["1", "2"]);
  assert.equal(node.manager.pending(podUid("low"))?.reason, "Deferred");
});

test("pending resizes are retried after 30 s, then every three minutes", async () => {
  const node = new TestNode();
  await node.start();
  node.ready = false;
  node.want(pod("p", "1"));
  node.want(pod("p", "2"));
  const controller = new AbortController();
  void node.manager.run(controller.signal);
  await node.world.run(29_000);
  node.ready = true;
  assert.equal(node.granted("p"), "1");
  await node.world.run(31_000);
  assert.equal(node.granted("p"), "2");
  controller.abort();
});

test("a resize waits, even for less, while the node would not take the pod, and is retried", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("p", "2"));
  node.condition = "The node had condition: [DiskPressure]. ";
  node.want(pod("p", "1"));
  assert.deepEqual(node.manager.pending(podUid("p")), { reason: "Deferred", message: node.condition });
  node.condition = undefined;
  const controller = new AbortController();
  void node.manager.run(controller.signal);
  await node.world.run(3 * 60_000);
  controller.abort();
  assert.equal(node.granted("p"), "1");
  assert.deepEqual(node.told(), ["ResizeDeferred p", "ResizeStarted p"]);
});

test("the next run knows earlier allocations, and forgets removed pods", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("p", "1"));
  node.want(pod("gone", "1"));
  await node.manager.saved();
  const wanted = pod("p", "9");
  node.pods.clear();
  node.pods.set("p", wanted);
  node.manager = node.make();
  // Sources may report pods before the record is read.
  node.manager.wanted(wanted, cause);
  await node.manager.load();
  assert.equal(node.granted("p"), "1");
  assert.equal(node.manager.pending(podUid("p"))?.reason, "Deferred");
  const controller = new AbortController();
  void node.manager.run(controller.signal);
  await node.world.run(300_000);
  controller.abort();
  node.want(pod("new", "1"));
  await node.manager.saved();
  const stored = new TextDecoder().decode(await node.files.read("/root/allocated_pods_state", 10_000));
  assert.match(stored, /new/);
  assert.doesNotMatch(stored, /gone/);
});

test("a removed pod's allocation is gone for the next run, where a pod may have its UID", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("p", "1"));
  await node.manager.saved();
  node.pods.clear();
  node.manager.remove(podUid("p"));
  await node.world.run(1000);
  node.manager = node.make();
  await node.manager.load();
  node.want(pod("p", "3"));
  assert.equal(node.granted("p"), "3");
  assert.deepEqual(node.told(), []);
});

test("a resize that an earlier run reported as pending stays pending until it is judged, and only news is told", async () => {
  const node = new TestNode();
  await node.start();
  node.want(pod("a", "3"));
  node.want(pod("p", "1"));
  node.want(pod("p", "2"));
  const pending = node.manager.pending(podUid("p"));
  assert.equal(pending?.reason, "Deferred");
  for (const lastTold of [pending, { reason: "Deferred", message: "of another time" } as const]) {
    node.entries.length = 0;
    Object.assign(node, { lastTold, ready: false });
    await node.manager.saved();
    node.manager = node.make();
    await node.manager.load();
    for (const wanted of [...node.pods.values()]) node.want(wanted);
    assert.deepEqual(node.manager.pending(podUid("p")), lastTold);
    node.ready = true;
    node.manager.retry(cause);
    assert.deepEqual(node.manager.pending(podUid("p")), pending);
    assert.deepEqual(node.told(), lastTold === pending ? [] : ["ResizeDeferred p"]);
  }
});

test("a record without pod-level resources, as earlier Go kubelets wrote it, leaves the pod those of its spec", async () => {
  const node = new TestNode();
  await node.files.makeDirectory("/root", 0o700);
  const resources = { limits: { cpu: "2", memory: "20Mi" }, requests: { cpu: "2", memory: "20Mi" } };
  const containers = new Map([["c", { requests: { cpu: "1", memory: "10Mi" } }]]);
  const record = encodeCheckpoint(new Map([[podUid("p"), { containers, pod: undefined }]]));
  for (const name of ["allocated", "actuated"]) await node.files.write(`/root/${name}_pods_state`, record, 0o600);
  await node.start();
  const wanted = pod("p", "1", { resources });
  assert.equal(qosClass(node.manager.allocatedPod(wanted)), "Guaranteed");
  node.want(wanted);
  await node.manager.saved();
  assert.deepEqual(node.told(), []);
  for (const name of ["allocated", "actuated"]) {
    const stored = new TextDecoder().decode(await node.files.read(`/root/${name}_pods_state`, 10_000));
    assert.deepEqual(decodeCheckpoint(stored).get(podUid("p"))?.pod, resources, name);
  }
  // From now on a difference is a resize.
  node.want(pod("p", "1", { resources: { limits: { cpu: "9" }, requests: { cpu: "9" } } }));
  assert.equal(node.manager.pending(podUid("p"))?.reason, "Infeasible");
});

test("pod-level resources that a resize adds are judged, in this run and in the next", async () => {
  const node = new TestNode();
  await node.start();
  const adding = (cpu: string): Pod => pod("p", "1", { resources: { requests: { cpu, memory: "10Mi" } } });
  node.want(pod("other", "2"));
  node.want(pod("p", "1"));
  node.want(adding("3"));
  const told = node.manager.pending(podUid("p"));
  assert.equal(told?.reason, "Deferred");
  await node.manager.saved();
  node.lastTold = told;
  node.manager = node.make();
  await node.manager.load();
  for (const wanted of [...node.pods.values()]) node.want(wanted);
  assert.equal(node.manager.allocatedPod(adding("3")).spec.resources, undefined);
  node.want(adding("2"));
  assert.equal(node.manager.allocatedPod(adding("2")).spec.resources?.requests?.["cpu"], "2");
  assert.deepEqual(node.told(), ["ResizeDeferred p", "ResizeStarted p"]);
});

test("an unreadable record is set aside, and pods are allocated their manifests", async () => {
  const node = new TestNode();
  await node.files.makeDirectory("/root", 0o700);
  await node.files.write("/root/allocated_pods_state", '{"data":"{}","checksum":1}', 0o600);
  await node.start();
  node.want(pod("p", "1"));
  assert.equal(node.granted("p"), "1");
  assert.notEqual(await node.files.stat("/root/allocated_pods_state.bad"), undefined);
});
