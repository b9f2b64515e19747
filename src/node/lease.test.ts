import assert from "node:assert/strict";
import { test } from "node:test";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import { silentLog } from "../../test/support/sources.ts";
import { vectorJson } from "../../test/support/vectors.ts";
import type { Lease } from "../api/node.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import { NodeLease } from "./lease.ts";

const recorded = vectorJson<Lease>("lease.json");
const missing = { kind: "Status", reason: "NotFound", code: 404 };

async function withLease(
  work: (kube: ScriptedKube, lease: NodeLease, restored: readonly number[]) => Promise<void>,
  nodeUid = (): string | undefined => "n",
): Promise<void> {
  const kube = new ScriptedKube();
  const restored: number[] = [];
  const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
  const deps = {
    client: kube.client(),
    clock: kube.clock,
    random,
    log: silentLog,
    nodeName: "node1",
    nodeUid,
    onStoreRestored: () => void restored.push(kube.clock.monotonic()),
  };
  const lease = new NodeLease(deps, 40);
  const stop = new AbortController();
  const ended = lease.run(stop.signal);
  await work(kube, lease, restored);
  stop.abort(new Error("the test is over"));
  await ended;
  assert.deepEqual(kube.clock.waits, []);
}

test("a lease equals the Go kubelet's, and is renewed every 10 s without a GET", async () => {
  await withLease(async (kube) => {
    await (await kube.next()).json(missing, 404);
    const creation = await kube.next();
    assert.deepEqual([creation.request.method, creation.request.lane], ["POST", "heartbeats"]);
    assert.deepEqual(creation.body, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: {
        name: "node1",
        namespace: "kube-node-lease",
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "node1", uid: "n" }],
      },
      spec: { holderIdentity: "node1", leaseDurationSeconds: 40, renewTime: "2026-11-20T14:02:00.000000Z" },
    });
    await creation.json(recorded);
    for (const renewTime of ["2026-11-20T14:02:10.000000Z", "2026-11-20T14:02:20.000000Z"]) {
      await kube.clock.advance(10_000);
      const renewal = await kube.next();
      assert.equal(renewal.request.method, "PUT");
      const { metadata, spec } = renewal.body as { metadata: Lease["metadata"]; spec: { renewTime: string } };
      assert.equal(metadata.resourceVersion, "485");
      assert.equal(spec.renewTime, renewTime);
      await renewal.json(recorded);
    }
  });
});

test("what others have set in a lease stays, and an owner that was deleted is replaced", async () => {
  const foreign = { apiVersion: "v1", kind: "ConfigMap", name: "c", uid: "c" };
  const node = { apiVersion: "v1", kind: "Node", name: "node1", uid: "n" };
  for (const [found, owners] of [
    [[], [node]],
    [[foreign], [foreign]],
    [
      [{ ...node, uid: "deleted" }, foreign],
      [foreign, node],
    ],
    [[{ ...node, controller: true }], [{ ...node, controller: true }]],
  ]) {
    await withLease(async (kube) => {
      const metadata = { ...recorded.metadata, ownerReferences: found };
      await (await kube.next()).json({ ...recorded, metadata, spec: { leaseTransitions: 3 } });
      const { metadata: sent, spec } = (await kube.next()).body as Lease;
      assert.deepEqual([sent.ownerReferences, spec?.["leaseTransitions"]], [owners, 3]);
    });
  }
});

test("a lease is not created before the node is registered, nor after its deletion: it would have no owner", async () => {
  let uid: string | undefined;
  const work = async (kube: ScriptedKube, lease: NodeLease): Promise<void> => {
    await (await kube.next()).json(missing, 404);
    assert.ok(await kube.isQuiet());
    uid = "n";
    lease.wake();
    await (await kube.next()).json(missing, 404);
    await (await kube.next()).json(recorded);
    uid = undefined;
    await kube.clock.advance(10_000);
    await (await kube.next()).json(missing, 404);
    await (await kube.next()).json(missing, 404);
    await kube.clock.advance(9000);
    assert.ok(await kube.isQuiet());
  };
  await withLease(work, () => uid);
});

test("Retry-After is respected, whatever changes meanwhile", async () => {
  await withLease(async (kube, lease) => {
    const busy = { kind: "Status", reason: "TooManyRequests", code: 429 };
    await (await kube.next()).json(busy, 429, { "retry-after": "3" });
    lease.wake();
    await kube.clock.advance(2999);
    assert.ok(await kube.isQuiet());
    await kube.clock.advance(1);
    await (await kube.next()).json(recorded);
    await (await kube.next()).json(recorded);
  });
});

test("a lease that fails in passing is tried again within its period, five times in all", async () => {
  await withLease(async (kube, lease) => {
    await (await kube.next()).json(recorded);
    await (await kube.next()).json(recorded);
    await kube.clock.advance(10_000);
    const failure = { kind: "Status", reason: "InternalError", code: 500 };
    for (const pauseMs of [100, 200, 400, 800]) {
      await (await kube.next()).json(failure, 500);
      await kube.clock.advance(pauseMs - 1);
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(1);
    }
    await (await kube.next()).json(failure, 500);
    await kube.clock.advance(8_499);
    assert.ok(await kube.isQuiet());
    await kube.clock.advance(1);
    (await kube.next()).fail(new KubeConnectionError("the connection broke"));
    await kube.clock.advance(0);
    await (await kube.next()).json(recorded);
    assert.equal(lease.renewedAtMs, kube.clock.monotonic());
  });
});

test("a lease that the server refuses is not sent again before the next is due", async () => {
  await withLease(async (kube) => {
    await (await kube.next()).json({ kind: "Status", reason: "Forbidden", code: 403 }, 403);
    await kube.clock.advance(9_999);
    assert.ok(await kube.isQuiet());
  });
});

test("a lease changed by another client is taken over at once", async () => {
  await withLease(async (kube, lease) => {
    await (await kube.next()).json(recorded);
    await (await kube.next()).json(recorded);
    await kube.clock.advance(10_000);
    await (await kube.next()).json({ kind: "Status", reason: "Conflict", code: 409 }, 409);
    await (await kube.next()).json({ ...recorded, metadata: { ...recorded.metadata, resourceVersion: "500" } });
    const renewal = await kube.next();
    assert.equal((renewal.body as Lease).metadata.resourceVersion, "500");
    await renewal.json(recorded);
    assert.equal(lease.renewedAtMs, kube.clock.monotonic());
  });
});

test("a lease with an older version reveals a restored store, once", async () => {
  const at = (resourceVersion: string): Lease => ({ ...recorded, metadata: { ...recorded.metadata, resourceVersion } });
  await withLease(async (kube, _lease, restored) => {
    await (await kube.next()).json(at("999"));
    await (await kube.next()).json(at("1002"));
    await kube.clock.advance(10_000);
    await (await kube.next()).json(at("1050"));
    await kube.clock.advance(10_000);
    assert.deepEqual(restored, []);
    await (await kube.next()).json({ kind: "Status", reason: "Conflict", code: 409 }, 409);
    await (await kube.next()).json(at("999"));
    await (await kube.next()).json(at("1060"));
    assert.equal(restored.length, 1, "however far the server has come since");
    for (const odd of ["", "x"]) {
      await kube.clock.advance(10_000);
      await (await kube.next()).json(at(odd));
    }
    assert.equal(restored.length, 1, "versions that can't be compared say nothing");
  });
});

test("a server that does not respond uses up its timeout, and the next renewal is on time", async () => {
  await withLease(async (kube) => {
    await (await kube.next()).json(recorded);
    await (await kube.next()).json(recorded);
    await kube.clock.advance(10_000);
    await kube.next();
    await kube.clock.advance(9_999);
    assert.ok(await kube.isQuiet());
    await kube.clock.advance(1);
    assert.equal((await kube.next()).request.method, "PUT");
  });
});

test("a long Retry-After does not delay the next heartbeat", async () => {
  await withLease(async (kube) => {
    const busy = { kind: "Status", reason: "TooManyRequests", code: 429 };
    for (let tries = 0; tries < 3; tries++) {
      await (await kube.next()).json(busy, 429, { "retry-after": "3600" });
      await kube.clock.advance(9_999);
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(1);
    }
    assert.equal((await kube.next()).request.method, "GET");
  });
});
