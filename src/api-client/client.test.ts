import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as z from "zod";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import { ApiError, askedPauseMs, isApiError, isExpired } from "./api-error.ts";
import { decoder, resourcePath } from "./resource.ts";

const Thing = z.object({ metadata: z.looseObject({ name: z.string() }) });
const things = { base: "/apis/example.org/v1", plural: "things", kind: "Thing", decode: decoder(Thing, "Thing") };
const place = { namespace: "ns", name: "a" };
const { signal } = new AbortController();
const call = { lane: "objects", resource: things, place, signal } as const;

describe("ApiClient", () => {
  test("reads objects without managedFields", async () => {
    const kube = new ScriptedKube();
    const got = kube.client().get(call);
    const request = await kube.next();
    assert.deepEqual(
      [request.request.method, request.request.path],
      ["GET", "/apis/example.org/v1/namespaces/ns/things/a"],
    );
    await request.json({ metadata: { name: "a", managedFields: [{}] } });
    assert.deepEqual(await got, { metadata: { name: "a" } });
  });

  test("an object in the version that was seen before is not decoded again", async () => {
    const kube = new ScriptedKube();
    const seen = { uid: "u1", resourceVersion: "5" };
    const answered = async (metadata: object, before: typeof seen): Promise<unknown> => {
      const got = kube.client().getOther(call, before);
      await (await kube.next()).json({ metadata });
      return await got;
    };
    const metadata = { name: "a", ...seen };
    assert.equal(await answered({ ...metadata, managedFields: [{}] }, seen), undefined);
    for (const other of [{ resourceVersion: "6" }, { uid: "u2" }, { resourceVersion: "" }]) {
      const changed = { ...metadata, ...other };
      assert.deepEqual(await answered(changed, seen), { metadata: changed });
    }
    // What has no version is always new.
    const none = { uid: "", resourceVersion: "" };
    assert.deepEqual(await answered({ name: "a", ...none }, none), { metadata: { name: "a", ...none } });
  });

  test("a response in several pieces is decoded as a whole", async () => {
    const kube = new ScriptedKube();
    const got = kube.client().get(call);
    const bytes = Buffer.from(JSON.stringify({ metadata: { name: "é€𝄞" } }));
    const answer = await kube.next();
    await answer.open();
    await answer.write(...[...bytes].map((byte) => Buffer.of(byte)));
    await answer.end();
    assert.deepEqual(await got, { metadata: { name: "é€𝄞" } });
  });

  test("sends patches with their content type", async () => {
    const kube = new ScriptedKube();
    const patched = kube
      .client()
      .patch({ ...call, place: { ...place, subresource: "status" } }, "strategic", { status: {} });
    const { request } = await kube.next();
    assert.equal(request.headers["content-type"], "application/strategic-merge-patch+json");
    assert.deepEqual(JSON.parse(request.body ?? ""), { status: {} });
    assert.match(request.path, /\/things\/a\/status$/);
    await kube.requests[0]?.json({ metadata: { name: "a" } });
    await patched;
  });

  test("errors name the request, with reason and code", async () => {
    const kube = new ScriptedKube();
    const got = assert.rejects(kube.client().get(call), (error: unknown) => {
      assert.ok(isApiError(error, "NotFound"));
      assert.equal(error.message, 'GET /apis/example.org/v1/namespaces/ns/things/a: things "a" not found');
      return true;
    });
    const answer = { kind: "Status", reason: "NotFound", message: 'things "a" not found', code: 404 };
    await (await kube.next()).json(answer, 404);
    await got;
    const gone = assert.rejects(kube.client().get(call), isExpired);
    await (await kube.next()).json("not a Status", 410);
    await gone;
  });

  test("only the API server's own 404 means that an object does not exist", async () => {
    const kube = new ScriptedKube();
    for (const body of ["default backend - 404", { reason: "NotFound" }]) {
      const got = assert.rejects(kube.client().get(call), (error: unknown) => {
        assert.ok(error instanceof ApiError);
        return error.code === 404 && !isApiError(error, "NotFound");
      });
      await (await kube.next()).json(body, 404);
      await got;
    }
  });

  test("an answer that can't be read is an error that shows nothing of it", async () => {
    const kube = new ScriptedKube();
    const noJson =
      /^ApiDecodeError: GET .*: the API server sent 6 characters that are not JSON \(200, without a content type\)$/;
    const got = assert.rejects(kube.client().get(call), noJson);
    const request = await kube.next();
    await request.open();
    await request.write("s3cret");
    await request.end();
    await got;
    const other = assert.rejects(kube.client().get(call), /^ApiDecodeError: Thing: metadata\.name does not fit/);
    await (await kube.next()).json({ metadata: { name: ["s3cret"] } });
    await other;
  });

  test("a foreign response is reported by its content type and location only", async () => {
    const kube = new ScriptedKube();
    const page = "text/html; charset=utf-8";
    const location = "https://user:s3cret@login.example/start?token=s3cret#s3cret";
    for (const [status, headers, told] of [
      [302, { "content-type": page, location }, "302, text/html, to https://login.example/start"],
      [307, { location: "/login?s3cret" }, "307, without a content type, to /login"],
      [502, { "content-type": page, location }, "502, text/html"],
      [200, { "content-type": page }, "200, text/html"],
    ] as const) {
      const ends = (error: unknown): boolean => {
        assert.ok(error instanceof Error);
        assert.doesNotMatch(error.message, /s3cret/);
        return error.message.includes(told);
      };
      const got = assert.rejects(kube.client().get(call), ends);
      await (await kube.next()).text("<s3cret>", status, headers);
      await got;
      const watched = assert.rejects(kube.client().watch(call), ends);
      await (await kube.next()).text("<s3cret>", status, headers);
      await watched;
    }
  });

  test("heartbeats end after their time, and other requests after half a minute", async () => {
    const kube = new ScriptedKube();
    const heartbeat = kube.client({ heartbeatTimeoutMs: 1000 }).get({ ...call, lane: "heartbeats" });
    const other = kube.client().get(call);
    const ends = [assert.rejects(heartbeat, /timed out after 1 s/), assert.rejects(other, /timed out after 30 s/)];
    await kube.clock.advance(1000);
    await ends[0];
    await kube.clock.advance(29_000);
    await ends[1];
  });

  test("a list has time for as long as more of it comes", async () => {
    const kube = new ScriptedKube();
    const listed = kube.client().list(call);
    const slow = await kube.next();
    await slow.open();
    await slow.write('{"items":');
    for (let pieces = 0; pieces < 3; pieces++) {
      await kube.clock.advance(29_000);
      await slow.write(" ");
    }
    await slow.write("[]}");
    await slow.end();
    assert.deepEqual(await listed, { items: [] });
    assert.deepEqual(kube.clock.waits, []);
    const silent = assert.rejects(kube.client().list(call), /timed out after 30 s/);
    const other = await kube.next();
    await other.open();
    await other.write("{");
    await kube.clock.advance(30_000);
    await silent;
  });

  test("requests keep their rate, statuses come first, heartbeats are free", async () => {
    const kube = new ScriptedKube();
    const client = kube.client({ requests: { perSecond: 10, burst: 2 } });
    const lanes = ["objects", "objects", "objects", "status", "heartbeats", "events"] as const;
    const all = Promise.allSettled(lanes.map((lane) => client.get({ ...call, lane })));
    await kube.clock.advance(0);
    const sent = (): string[] => kube.requests.map(({ request }) => request.lane);
    assert.deepEqual(sent(), ["objects", "objects", "heartbeats", "events"]);
    await kube.clock.advance(100);
    assert.deepEqual(sent().slice(4), ["status"]);
    await kube.clock.advance(100);
    assert.deepEqual(sent().slice(5), ["objects"]);
    await kube.clock.advance(30_000);
    await all;
  });

  test("Retry-After is passed to the rejected caller, and delays no other request", async () => {
    const kube = new ScriptedKube();
    const client = kube.client();
    for (const lane of ["heartbeats", "status", "objects", "events"] as const) {
      const wait = { reason: "TooManyRequests", retryAfterMs: 3_600_000 };
      const refused = assert.rejects(client.get({ ...call, lane }), (error: unknown) => {
        assert.equal(askedPauseMs(error), 60_000, "no longer than a minute");
        return Object.entries(wait).every(([key, value]) => (error as ApiError)[key as keyof typeof wait] === value);
      });
      const status = { kind: "Status", reason: "TooManyRequests" };
      await (await kube.next()).json(status, 429, { "retry-after": "3600" });
      await refused;
      const other = client.get({ ...call, lane });
      await (await kube.next()).json({ metadata: { name: "a" } });
      await other;
    }
  });

  test("a request canceled while it waits takes no turn", async () => {
    const kube = new ScriptedKube();
    const client = kube.client({ requests: { perSecond: 1, burst: 1 } });
    const controller = new AbortController();
    const first = client.get(call);
    const second = assert.rejects(client.get({ ...call, signal: controller.signal }), /canceled/);
    controller.abort(new Error("canceled"));
    await second;
    await (await kube.next()).json({ metadata: { name: "a" } });
    await first;
  });
});

test("paths are encoded, and parameters that are not given are left out", () => {
  const resource = { base: "/api/v1", plural: "pods" };
  assert.equal(
    resourcePath(resource, { namespace: "a/b", name: "c" }, { watch: true, limit: undefined, fieldSelector: "x=y" }),
    "/api/v1/namespaces/a%2Fb/pods/c?watch=true&fieldSelector=x%3Dy",
  );
});
