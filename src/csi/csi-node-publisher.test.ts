import assert from "node:assert/strict";
import { test } from "node:test";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import type { NodeObject } from "../api/node.ts";
import { CsiNodePublisher } from "./csi-node-publisher.ts";

const driver = { name: "d", nodeId: "id", maxVolumes: 0n, topology: {} };
const busy = { kind: "Status", code: 429, reason: "TooManyRequests", message: "busy" };

const { signal } = new AbortController();

class World {
  readonly kube = new ScriptedKube();
  readonly publisher: CsiNodePublisher;

  constructor() {
    const { kube } = this;
    const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
    const deps = { client: kube.client(), clock: kube.clock, random, journal: new MemoryRecorder(), log: silentLog };
    this.publisher = new CsiNodePublisher({ ...deps, nodeName: "node1" });
  }

  async run(work: () => Promise<void>): Promise<void> {
    const stop = new AbortController();
    const ended = this.publisher.run(stop.signal);
    await work();
    stop.abort(new Error("the test is over"));
    await ended;
  }
}

function nodeThatIs(ready: "True" | "False"): NodeObject {
  const conditions = [{ type: "Ready", status: ready, reason: "", message: "" }];
  return { metadata: { name: "node1", uid: "n", resourceVersion: "1" }, spec: {}, status: { conditions } };
}

test("a Retry-After of the API server is respected, whatever registers meanwhile", async () => {
  const world = new World();
  const { kube, publisher } = world;
  await world.run(async () => {
    publisher.registered(nodeThatIs("False"));
    const first = await kube.next();
    await first.json(busy, 429, { "retry-after": "5" });
    void publisher.install(driver, signal).catch(() => {});
    await kube.clock.advance(4900);
    await assert.rejects(kube.next(), /no request came/u);
    await kube.clock.advance(200);
    assert.equal((await kube.next()).request.method, "GET");
  });
});

test("a Ready Node stays Ready until CSINode cannot be published, another becomes Ready only after it exists", () => {
  for (const [ready, problem] of [
    ["True", undefined],
    ["False", "CSINode is not yet initialized"],
  ] as const) {
    const { publisher } = new World();
    assert.equal(publisher.problem, "CSINode is not yet initialized");
    publisher.registered(nodeThatIs(ready));
    assert.equal(publisher.problem, problem);
  }
});

test("a driver's registration that is canceled does not wait for an API server that does not respond", async () => {
  const { publisher, kube } = new World();
  const stop = new AbortController();
  const installed = publisher.install(driver, stop.signal);
  await kube.clock.advance(100);
  stop.abort(new Error("the socket is gone"));
  await assert.rejects(installed, /the socket is gone/u);
  assert.deepEqual(kube.clock.waits, []);
});

test("a later answer of the driver does not make its registration fail", async () => {
  const { publisher, kube } = new World();
  const registered = publisher.install(driver, signal);
  const counted = publisher.update({ ...driver, maxVolumes: 2n }, signal);
  await kube.clock.advance(10_000);
  await Promise.all([registered, counted]);
  const again = publisher.install(driver, signal);
  publisher.uninstall("d");
  const refused = assert.rejects(again, /CSI driver d was deregistered meanwhile/u);
  await kube.clock.advance(10_000);
  await refused;
});
