import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import { silentLog } from "../../test/support/sources.ts";
import { podUid } from "../base/ids.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { systemRandom } from "../linux/processes/random.ts";
import { EventRecorder } from "./event-recorder.ts";

const pod = podWith({ containers: [], initContainers: [{ name: "i" }] });
const started: JournalEntry = {
  ...{ seq: 1, time: 0, kind: "outcome", what: "StartContainer", result: "done", message: "done" },
  ...{ pod: { namespace: "ns", name: "p", uid: podUid("u") }, container: "i" },
};

async function withRecorder(
  entries: readonly JournalEntry[],
  work: (kube: ScriptedKube) => Promise<void>,
): Promise<void> {
  const kube = new ScriptedKube();
  const find = (uid: string) => (uid === "u" ? pod : undefined);
  const world = { client: kube.client(), clock: kube.clock, random: systemRandom, log: silentLog };
  const deps = { ...world, nodeName: "node1", pod: find };
  const stop = new AbortController();
  async function* feed(): AsyncIterable<JournalEntry> {
    yield* entries;
  }
  const ended = new EventRecorder(deps).run(feed(), stop.signal);
  await work(kube);
  stop.abort(new Error("the test is over"));
  await ended;
  assert.deepEqual(kube.clock.waits, []);
}

describe("EventRecorder", () => {
  test("begins with its own start, then reports containers, and counts repetitions", async () => {
    await withRecorder([started, started], async (kube) => {
      assert.ok(await kube.isQuiet(), "statuses go first");
      await kube.clock.advance(40);
      const first = await kube.next();
      assert.equal((first.body as { reason: string }).reason, "Starting");
      assert.equal(first.url.pathname, "/api/v1/namespaces/default/events");
      await first.json({ metadata: { name: "node1.1" } }, 201);
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(40);
      const second = await kube.next();
      const { metadata, ...body } = second.body as { metadata: { name: string } };
      assert.match(metadata.name, /^p\.[0-9a-f]+$/);
      assert.deepEqual(body, {
        apiVersion: "v1",
        kind: "Event",
        involvedObject: {
          ...{ apiVersion: "v1", kind: "Pod", namespace: "ns", name: "p", uid: podUid("u") },
          fieldPath: "spec.initContainers{i}",
        },
        ...{ type: "Normal", reason: "Started", message: "Container started", count: 1 },
        firstTimestamp: "2026-11-20T14:02:00Z",
        lastTimestamp: "2026-11-20T14:02:00Z",
        source: { component: "kubelet", host: "node1" },
        reportingComponent: "kubelet",
        reportingInstance: "node1",
      });
      await second.json({ metadata: { name: "p.2" } }, 201);
      const third = await kube.next();
      assert.deepEqual([third.request.method, third.url.pathname], ["PATCH", "/api/v1/namespaces/ns/events/p.2"]);
      assert.equal((third.body as { count: number }).count, 2);
      await third.json({ kind: "Status", reason: "NotFound", code: 404 }, 404);
      const again = await kube.next();
      assert.equal(again.request.method, "POST", "the server had forgotten it");
      assert.equal((again.body as { count: number }).count, 2);
    });
  });

  test("events of the node are found by kubectl, by its version and by its name as UID", async () => {
    await withRecorder([], async (kube) => {
      await kube.clock.advance(40);
      const request = await kube.next();
      const { involvedObject } = request.body as { involvedObject: object };
      assert.deepEqual(involvedObject, { apiVersion: "v1", kind: "Node", name: "node1", uid: "node1" });
      await request.json({ metadata: { name: "node1.1" } }, 201);
    });
  });

  test("an event that also concerns a claim is sent for the pod and for the claim", async () => {
    const message = 'MountVolume.NodeExpandVolume succeeded for volume "pv" node1';
    const claim = { namespace: "ns", name: "c", uid: "uid-c" };
    const expanded: JournalEntry = {
      ...{ seq: 1, time: 0, kind: "note", what: "FileSystemResizeSuccessful", message, data: { claim } },
      pod: { namespace: "ns", name: "p", uid: podUid("u") },
    };
    await withRecorder([expanded], async (kube) => {
      await kube.clock.advance(40);
      await (await kube.next()).json({ metadata: { name: "node1.1" } }, 201);
      await kube.clock.advance(40);
      const about: unknown[] = [];
      for (let events = 0; events < 2; events++) {
        const request = await kube.next();
        const { involvedObject, reason } = request.body as { involvedObject: { kind: string }; reason: string };
        assert.equal(request.url.pathname, "/api/v1/namespaces/ns/events");
        assert.equal(reason, "FileSystemResizeSuccessful");
        about.push(involvedObject);
        await request.json({ metadata: { name: `e.${events}` } }, 201);
      }
      assert.deepEqual(about, [
        { apiVersion: "v1", kind: "Pod", namespace: "ns", name: "p", uid: podUid("u") },
        { apiVersion: "v1", kind: "PersistentVolumeClaim", ...claim },
      ]);
    });
  });

  test("an event whose name would be longer than a name may be has a UUID for one", async () => {
    const about = (length: number): JournalEntry => ({
      ...started,
      pod: { namespace: "ns", name: "p".repeat(length), uid: podUid("u") },
    });
    await withRecorder([about(236), about(237)], async (kube) => {
      const nextName = async (): Promise<string> => {
        const request = await kube.next();
        const { name } = (request.body as { metadata: { name: string } }).metadata;
        await request.json({ metadata: { name } }, 201);
        return name;
      };
      await kube.clock.advance(40);
      await nextName();
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(40);
      assert.match(await nextName(), /^p{236}\.[0-9a-f]{16}$/);
      assert.match(await nextName(), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    });
  });

  test("an unreachable server is retried, and Retry-After is respected", async () => {
    await withRecorder([started], async (kube) => {
      await kube.clock.advance(40);
      (await kube.next()).fail(new Error("there is nobody"));
      await kube.clock.advance(9999);
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(1);
      await (await kube.next()).json({ kind: "Status", code: 429 }, 429, { "retry-after": "30" });
      await kube.clock.advance(29_999);
      assert.ok(await kube.isQuiet(), "it asks to wait");
      await kube.clock.advance(1);
      await (await kube.next()).json({ metadata: { name: "node1.1" } }, 201);
      await kube.clock.advance(40);
      assert.equal(((await kube.next()).body as { reason: string }).reason, "Started");
    });
  });

  test("an event with an error response is dropped at once, and delays no other", async () => {
    const second: JournalEntry = { ...started, what: "CreateContainer" };
    await withRecorder([started, second], async (kube) => {
      await kube.clock.advance(40);
      await (await kube.next()).json({ kind: "Status", code: 403 }, 403);
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(40);
      await (await kube.next()).json({ kind: "Status", code: 500, message: "a webhook is broken" }, 500);
      assert.equal(((await kube.next()).body as { reason: string }).reason, "Created");
    });
  });
});
