import assert from "node:assert/strict";
import { test } from "node:test";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { ResourceSlices } from "./resource-slices.ts";

class World {
  readonly kube = new ScriptedKube();
  readonly journal = new MemoryRecorder();
  readonly stop = new AbortController();
  readonly slices: ResourceSlices;
  readonly ended: Promise<void>;
  readonly warnings: string[] = [];

  constructor() {
    const { kube, journal } = this;
    const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
    const log = { ...silentLog, warn: (message: string) => void this.warnings.push(message) };
    this.slices = new ResourceSlices({
      ...{ client: kube.client(), clock: kube.clock, random, journal, log },
      nodeName: "node1",
    });
    this.ended = this.slices.run(this.stop.signal);
  }
}

test("the node's ResourceSlices are deleted once, after the Node is registered", async () => {
  const { kube, slices, ended, journal } = new World();
  await assert.rejects(kube.next(), /no request came/u);
  slices.registered();
  const asked = await kube.next();
  assert.equal(asked.request.method, "DELETE");
  assert.equal(asked.url.pathname, "/apis/resource.k8s.io/v1/resourceslices");
  assert.equal(asked.url.searchParams.get("fieldSelector"), "spec.nodeName=node1");
  await asked.json({ kind: "ResourceSliceList", apiVersion: "resource.k8s.io/v1", metadata: {}, items: [] });
  await ended;
  slices.registered();
  await assert.rejects(kube.next(), /no request came/u);
  assert.deepEqual(
    journal.entries.map(({ kind, what }) => [kind, what]),
    [
      ["action", "DeleteResourceSlices"],
      ["outcome", "DeleteResourceSlices"],
    ],
  );
});

test("an API server without ResourceSlices has none to delete", async () => {
  const { kube, slices, ended } = new World();
  slices.registered();
  await (await kube.next()).text("404 page not found\n", 404, { "content-type": "text/plain" });
  await ended;
});

test("other failures are retried after 1 s, 2 s … 5 min, with one warning", async () => {
  const { kube, slices, ended, stop, warnings } = new World();
  slices.registered();
  const forbidden = { kind: "Status", code: 403, reason: "Forbidden", message: "no" };
  for (const seconds of [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]) {
    await (await kube.next()).json(forbidden, 403);
    await kube.clock.advance(seconds * 1000 - 1);
    await assert.rejects(kube.next(), /no request came/u);
    await kube.clock.advance(1);
  }
  assert.equal(warnings.length, 1);
  stop.abort(new Error("the test is over"));
  await ended;
});

test("a stop ends the wait for the registration", async () => {
  const { stop, ended, kube } = new World();
  stop.abort(new Error("the test is over"));
  await ended;
  assert.equal(kube.requests.length, 0);
});
