import assert from "node:assert/strict";
import { test } from "node:test";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import type { NodeCondition, NodeObject } from "../api/node.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import type { NodeObservation } from "./node-status.ts";
import { NodeVolumes } from "./node-volumes.ts";
import { NodeSync, type NodeSyncConfig } from "./node-sync.ts";

const facts = {
  processors: 1,
  memoryBytes: 1n << 30n,
  swapBytes: 0n,
  hugePages: [],
  ...{ kernelVersion: "6", osImage: "Linux", machineId: "m", systemUuid: "s", bootId: "b" },
};
const config = {
  identity: {
    name: "node1",
    addresses: ["10.0.0.1"],
    facts,
    architecture: "amd64",
    kubeletVersion: "v1.36.2",
    apiPort: 0,
    runtime: { name: "sim", version: "1", handlers: [], supplementalGroupsPolicy: false },
    capacity: { maxPods: 110, podsPerCore: 0, reserved: [], reservedSystemCpus: "" },
  },
  registration: { enabled: true, taints: [], labels: {}, providerId: "", controllerAttaches: true, staleResources: [] },
  updatePeriodMs: 10_000,
  reportPeriodMs: 300_000,
};

/** What a new node says of its pressure, when it has none. */
const wellFromTheFirst = ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"];

type Body = Readonly<Record<string, unknown>>;
type SentNode = NodeObject & {
  readonly metadata: { readonly name: string; readonly labels: Record<string, string> };
  readonly spec: Body;
  readonly status: { readonly conditions: NodeCondition[] };
};

class World {
  readonly kube = new ScriptedKube();
  readonly journal = new MemoryRecorder();
  readonly volumes = new NodeVolumes();
  readonly sync: NodeSync;
  /** The pod CIDRs that the runtime received; the first time it is unavailable. */
  readonly podCidrs: string[] = [];
  /** What the node sees of itself from now on. */
  observed: Partial<NodeObservation> = {};
  publishedAddresses: readonly unknown[] = [];

  constructor(registration: Partial<NodeSyncConfig["registration"]> = {}) {
    const { kube, journal } = this;
    const { clock } = kube;
    const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
    const observe = async () => ({
      now: clock.now(),
      addresses: ["192.0.2.2"],
      runtime: { name: "sim", version: "1", handlers: [], supplementalGroupsPolicy: false },
      problems: [],
      images: [],
      volumesInUse: this.volumes.used,
      ...this.observed,
    });
    const podCidr = async (cidr: string): Promise<void> => {
      this.podCidrs.push(cidr);
      if (this.podCidrs.length === 1) throw new Error("the runtime is away");
    };
    const addressesPublished = (list: readonly unknown[]): void => void (this.publishedAddresses = list);
    const told = { podCidr, addressesPublished, onRegistered: () => {}, volumes: this.volumes };
    const deps = { client: kube.client(), clock, random, journal, log: silentLog, observe, ...told };
    this.sync = new NodeSync(deps, { ...config, registration: { ...config.registration, ...registration } });
  }

  async run(work: () => Promise<void>): Promise<void> {
    const stop = new AbortController();
    const ended = this.sync.run(stop.signal);
    await work();
    stop.abort(new Error("the test is over"));
    await ended;
    assert.deepEqual(this.kube.clock.waits, []);
  }

  /** Answers the registration with the Node as it was sent. */
  async register(): Promise<SentNode> {
    const creation = await this.kube.next();
    assert.equal(creation.request.method, "POST");
    const sent = creation.body as SentNode;
    const node = { ...sent, metadata: { ...sent.metadata, uid: "n", resourceVersion: "2" } };
    await creation.json(node, 201);
    return node;
  }

  /** The next request, which has to be this one; answered with that. */
  async answer(what: string, answer: unknown, status = 200): Promise<Body> {
    const next = await this.kube.next();
    assert.equal(`${next.request.method} ${next.url.pathname}`, what);
    const body = next.body as Body;
    await next.json(answer, status);
    return body;
  }

  notes(): string[] {
    return this.journal.entries.map(({ what }) => what);
  }
}

const statusPath = "PATCH /api/v1/nodes/node1/status";
const failure = (reason: string, code: number): Body => ({ kind: "Status", reason, code });

/** A node whose first request, its registration, has been answered with that Node. */
async function registered(
  work: (sync: NodeSync, node: SentNode, notes: () => string[], world: World) => Promise<void>,
): Promise<void> {
  const world = new World();
  await world.run(async () => {
    const node = await world.register();
    await work(world.sync, node, () => world.notes(), world);
  });
}

test("a list from before the registration, without the Node, is not a deletion", async () => {
  await registered(async (sync, _node, notes) => {
    sync.replaced([]);
    assert.deepEqual(notes(), ["NodeRegistered", ...wellFromTheFirst]);
    assert.equal(sync.uid, "n");
  });
});

test("a node that starts without an address keeps those of its Node, for its pods, too", async () => {
  await registered(async (sync, node, _notes, world) => {
    const addresses = [{ type: "InternalIP", address: "192.0.2.9" }];
    world.observed = { addresses: [] };
    const metadata = { ...node.metadata, resourceVersion: "3" };
    sync.changed("MODIFIED", { metadata, status: { ...node.status, addresses } });
    await world.kube.clock.advance(10_000);
    assert.deepEqual([await world.kube.isQuiet(), world.publishedAddresses], [true, addresses]);
  });
});

test("the duration of the Node's creation is recorded, including all attempts", async () => {
  const world = new World();
  await world.run(async () => {
    await world.answer("POST /api/v1/nodes", failure("InternalError", 500), 500);
    const { clock } = world.kube;
    await clock.advance(100);
    await world.register();
    const [{ durationMs, data } = {}] = world.journal.entries;
    assert.deepEqual([durationMs, data], [100, { isNew: true }]);
  });
});

test("the deletion of a Node by others is recorded", async () => {
  await registered(async (sync, node, notes) => {
    sync.replaced([node]);
    sync.replaced([]);
    assert.deepEqual(notes(), ["NodeRegistered", ...wellFromTheFirst, "NodeDeleted"]);
    assert.equal(sync.uid, undefined);
  });
});

test("a failed registration is retried after 100 ms to 7 s", async () => {
  const world = new World();
  await world.run(async () => {
    for (const pauseMs of [100, 200, 400, 800, 1600, 3200, 6400, 7000, 7000]) {
      await world.answer("POST /api/v1/nodes", failure("ServiceUnavailable", 503), 503);
      await world.kube.clock.advance(pauseMs - 1);
      assert.ok(await world.kube.isQuiet());
      await world.kube.clock.advance(1);
    }
    await world.register();
    assert.equal(world.sync.uid, "n");
  });
});

test("Retry-After is respected, up to the interval of heartbeats", async () => {
  const world = new World();
  await world.run(async () => {
    for (const [seconds, pauseMs] of [
      [3, 3000],
      [3600, 10_000],
    ] as const) {
      const creation = await world.kube.next();
      await creation.json(failure("TooManyRequests", 429), 429, { "retry-after": String(seconds) });
      await world.kube.clock.advance(pauseMs - 1);
      assert.ok(await world.kube.isQuiet());
      await world.kube.clock.advance(1);
    }
    const node = await world.register();
    world.observed = { problems: ["the runtime does not answer"] };
    await world.kube.clock.advance(10_000);
    const patch = await world.kube.next();
    await patch.json(failure("TooManyRequests", 429), 429, { "retry-after": "5" });
    world.sync.wake();
    await world.kube.clock.advance(4999);
    assert.ok(await world.kube.isQuiet(), "a hint is no reason to hurry");
    await world.kube.clock.advance(1);
    await world.answer(statusPath, node);
  });
});

test("a look-up with Retry-After is repeated then, for all waiters", async () => {
  const busy = [failure("TooManyRequests", 429), 429, { "retry-after": "4" }] as const;
  await registered(async (sync, node, _notes, { kube }) => {
    const first = sync.refresh();
    await (await kube.next()).json(...busy);
    await kube.clock.advance(1000);
    const second = sync.refresh();
    await kube.clock.advance(2999);
    assert.ok(await kube.isQuiet(), "another pod's look-up waits too");
    await kube.clock.advance(1);
    for (const zone of ["a", "b"]) {
      await (await kube.next()).json({ ...node, metadata: { name: zone, labels: { ...node.metadata.labels, zone } } });
    }
    await Promise.all([first, second]);
    assert.equal(sync.place().labels["zone"], "b");
    const vain = sync.refresh();
    for (let tries = 1; tries <= 3; tries++) {
      await (await kube.next()).json(...busy);
      if (tries < 3) await kube.clock.advance(4000);
    }
    await vain;
  });
});

test("an existing Node gets missing fields, even if the server forbids nodes to create theirs", async () => {
  for (const [reason, code] of [
    ["AlreadyExists", 409],
    ["Forbidden", 403],
  ] as const) {
    const world = new World({ labels: { "topology.kubernetes.io/zone": "a" }, controllerAttaches: false });
    await world.run(async () => {
      const sent = (await world.answer("POST /api/v1/nodes", failure(reason, code), code)) as unknown as SentNode;
      const { "topology.kubernetes.io/zone": _zone, ...labels } = sent.metadata.labels;
      const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true", other: "x" };
      const found = { ...sent, metadata: { ...sent.metadata, labels, annotations, uid: "old", resourceVersion: "9" } };
      await world.answer("GET /api/v1/nodes/node1", found);
      const patch = await world.answer(statusPath, found);
      const gone = { "volumes.kubernetes.io/controller-managed-attach-detach": null };
      assert.deepEqual(patch, { metadata: { labels: { "topology.kubernetes.io/zone": "a" }, annotations: gone } });
      assert.equal(world.sync.uid, "old");
      assert.deepEqual(world.notes(), ["NodeRegistered"]);
      assert.deepEqual(world.journal.entries[0]?.data, { isNew: false });
    });
  }
});

test("an existing node reports its status at once", async () => {
  let earlier: SentNode | undefined;
  await registered(async (_sync, node) => void (earlier = node));
  const world = new World();
  await world.run(async () => {
    await world.kube.clock.advance(60_000 - world.kube.clock.monotonic());
    await world.answer("POST /api/v1/nodes", failure("AlreadyExists", 409), 409);
    await world.answer("GET /api/v1/nodes/node1", earlier);
    const { status } = (await world.answer(statusPath, earlier)) as { status: NonNullable<NodeObject["status"]> };
    assert.deepEqual(Object.keys(status).toSorted(), ["$setElementOrder/conditions", "conditions"]);
    await world.kube.clock.advance(10_000 * 29);
    assert.ok(await world.kube.isQuiet());
  });
});

test("with registerNode false a node waits until another client registers it", async () => {
  const world = new World({ enabled: false });
  await world.run(async () => {
    await world.answer("GET /api/v1/nodes/node1", failure("NotFound", 404), 404);
    await world.kube.clock.advance(100);
    const found = { metadata: { name: "node1", uid: "theirs" } };
    await world.answer("GET /api/v1/nodes/node1", found);
    assert.equal(world.sync.uid, "theirs");
  });
});

test("a status is sent when it changes, else every five minutes", async () => {
  await registered(async (_sync, node, notes, world) => {
    const { clock } = world.kube;
    await clock.advance(10_000 * 29);
    assert.ok(await world.kube.isQuiet());
    await clock.advance(10_000);
    const beat = await world.answer(statusPath, node);
    assert.deepEqual(Object.keys((beat as { status: object }).status).toSorted(), [
      "$setElementOrder/conditions",
      "conditions",
    ]);
    world.observed = { problems: ["the runtime is away"], pressures: ["DiskPressure"] };
    await clock.advance(10_000);
    const conditions = node.status.conditions.map((condition) => {
      const status = { DiskPressure: "True", Ready: "False" }[condition.type] ?? condition.status;
      return { ...condition, status };
    });
    await world.answer(statusPath, { ...node, status: { ...node.status, conditions } });
    assert.deepEqual(notes(), ["NodeRegistered", ...wellFromTheFirst, "NodeHasDiskPressure", "NodeNotReady"]);
  });
});

test("a status that fails temporarily is sent again within its period, five times in all", async () => {
  await registered(async (_sync, node, _notes, world) => {
    const { clock } = world.kube;
    world.observed = { problems: ["the runtime is away"] };
    await clock.advance(10_000);
    for (const pauseMs of [100, 200, 400, 800]) {
      await world.answer(statusPath, failure("InternalError", 500), 500);
      await clock.advance(pauseMs - 1);
      assert.ok(await world.kube.isQuiet());
      await clock.advance(1);
    }
    await world.answer(statusPath, failure("InternalError", 500), 500);
    await clock.advance(8_499);
    assert.ok(await world.kube.isQuiet());
    await clock.advance(1);
    (await world.kube.next()).fail(new KubeConnectionError("the connection broke"));
    await clock.advance(0);
    await world.answer(statusPath, node);
  });
});

test("a node that others report as silent responds at once", async () => {
  await registered(async (sync, node, _notes, world) => {
    await world.kube.clock.advance(1);
    const conditions = node.status.conditions.map((condition) => ({ ...condition, status: "Unknown" as const }));
    const seen = { ...node, status: { ...node.status, conditions } };
    sync.changed("MODIFIED", seen);
    await world.answer(statusPath, node);
  });
});

test("a response that arrives after a newer watch event does not undo it", async () => {
  await registered(async (sync, node, _notes, world) => {
    const at = (resourceVersion: string, more: Partial<NodeObject>): NodeObject => {
      return { ...node, ...more, metadata: { ...node.metadata, resourceVersion } };
    };
    world.observed = { pressures: ["PIDPressure"] };
    await world.kube.clock.advance(10_000);
    const patch = await world.kube.next();
    const conditions = node.status.conditions.map((condition) => ({ ...condition, status: "Unknown" as const }));
    const spec = { podCIDRs: ["10.1.0.0/24"], taints: [{ key: "out", effect: "NoExecute" as const }] };
    const seen = at("4", { spec, status: { ...node.status, conditions } });
    sync.changed("MODIFIED", seen);
    await patch.json(at("3", {}));
    assert.deepEqual(sync.place().taints, spec.taints);
    const { status } = await world.answer(statusPath, at("5", {}));
    assert.equal((status as NodeObject["status"])?.conditions?.find(({ type }) => type === "Ready")?.status, "True");
    assert.deepEqual(world.podCidrs, ["10.1.0.0/24"]);
    sync.replaced([at("2", {})]);
    assert.deepEqual(sync.place().taints, [], "a list counts: the store was set back");
  });
});

test("the runtime gets the node's podCIDR, until it accepts it, and when it changes", async () => {
  await registered(async (sync, node, _notes, world) => {
    const { clock } = world.kube;
    const spec = { podCIDRs: ["10.1.0.0/24", "fd00:1::/64"] };
    for (let times = 1; times <= 3; times++) {
      sync.changed("MODIFIED", { ...node, spec });
      await clock.advance(1);
    }
    assert.deepEqual(world.podCidrs, ["10.1.0.0/24,fd00:1::/64", "10.1.0.0/24,fd00:1::/64"]);
    sync.changed("MODIFIED", { ...node, spec: { podCIDRs: ["10.2.0.0/24"] } });
    await clock.advance(1);
    assert.equal(world.podCidrs.at(-1), "10.2.0.0/24");
  });
});

test("cordoning, uncordoning and a reboot are reported", async () => {
  await registered(async (sync, node, notes, world) => {
    const seen = node as Parameters<NodeSync["changed"]>[1];
    sync.changed("MODIFIED", { ...seen, spec: { unschedulable: true } });
    sync.changed("MODIFIED", { ...seen, spec: { unschedulable: true } });
    sync.changed("MODIFIED", { ...seen, spec: {} });
    const known = ["NodeRegistered", ...wellFromTheFirst, "NodeNotSchedulable", "NodeSchedulable"];
    assert.deepEqual(notes(), known);
    sync.changed("MODIFIED", { ...seen, status: { ...seen.status, nodeInfo: { bootID: "before" } } });
    await world.kube.clock.advance(10_000);
    await world.answer(statusPath, node);
    await world.kube.clock.advance(10_000);
    assert.deepEqual(notes(), [...known, "Rebooted"]);
    assert.equal(world.journal.messages("Rebooted")[0], "Node node1 has been rebooted, boot id: b");
  });
});

test("a cloud's metadata after the registration is written to the Node", async () => {
  await registered(async (_sync, node, _notes, world) => {
    const labels = { "topology.kubernetes.io/zone": "z" };
    const addresses = [{ type: "InternalIP", address: "10.9.9.9" }] as const;
    world.observed = { cloud: { providerId: "aws:///z/i", labels, addresses } };
    await world.kube.clock.advance(10_000);
    const after = {
      ...node,
      metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...labels } },
      spec: { providerID: "aws:///z/i" },
    };
    const patch = await world.answer("PATCH /api/v1/nodes/node1", after);
    assert.deepEqual(patch, { metadata: { labels }, spec: { providerID: "aws:///z/i" } });
    const status = (await world.answer(statusPath, after)) as { status: { addresses: unknown[] } };
    assert.deepEqual(status.status.addresses[0], addresses[0]);
  });
});
