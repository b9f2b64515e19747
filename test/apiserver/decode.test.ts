import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { decode } from "./decode.ts";
import { at, type Fields, itemsAt } from "./objects.ts";
import { TestApiServer } from "./server.ts";
import { podNamed, TestClient } from "./testing.ts";

describe("decoding an object by its schema", () => {
  const pod = (status: Fields): Fields => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, status });

  it("rejects values of another type, and names their path", () => {
    const wrong: readonly (readonly [status: Fields, path: RegExp])[] = [
      [{ phase: 1 }, /status\.phase is no string: 1/],
      [{ startTime: "yesterday" }, /status\.startTime is no time/],
      [
        { containerStatuses: [{ name: "a" }, { restartCount: "2" }] },
        /status\.containerStatuses\[1\]\.restartCount is no integer/,
      ],
      [{ allocatedResources: { cpu: "1 core" } }, /status\.allocatedResources\.cpu is no quantity/],
      [{ conditions: {} }, /status\.conditions is no list/],
      [{ podIPs: ["10.0.0.1"] }, /status\.podIPs\[0\] is no object/],
    ];
    for (const [status, path] of wrong) assert.throws(() => decode("v1", "Pod", pod(status)), path);
    const lease = (renewTime: string): Fields => ({ metadata: { name: "a" }, spec: { renewTime } });
    const version = "coordination.k8s.io/v1";
    assert.throws(() => decode(version, "Lease", lease("2026-11-20T19:34:53Z")), /spec\.renewTime is no microtime/);
    decode(version, "Lease", lease("2026-11-20T19:34:53.254520Z"));
  });
  it("drops unknown members and nulls", () => {
    const read = decode(
      "v1",
      "Pod",
      pod({ phase: "Running", colour: "red", message: null, podIPs: [{ ip: "10.0.0.1", v: 4 }] }),
    );
    assert.deepEqual(read.unknown, ["status.colour", "status.podIPs[0].v"]);
    assert.deepEqual(read.object["status"], { phase: "Running", podIPs: [{ ip: "10.0.0.1" }] });
  });
  it("knows everything that a real kubelet wrote", () => {
    const recorded = (name: string): string =>
      readFileSync(new URL(`../fixtures/vectors/${name}`, import.meta.url), "utf8");
    const pods = itemsAt(JSON.parse(recorded("pods.json")) as Fields, "items");
    const statuses = recorded("pod-status-stream.jsonl").trim().split("\n");
    assert.ok(pods.length > 3 && statuses.length > 50);
    for (const each of pods) assert.deepEqual(decode("v1", "Pod", each).unknown, []);
    for (const line of statuses) {
      const { status } = JSON.parse(line) as { readonly status: Fields };
      assert.deepEqual(decode("v1", "Pod", pod(status)).unknown, [], line);
    }
  });
  it("stores times in UTC, in whole seconds", () => {
    const read = decode("v1", "Pod", pod({ startTime: "2026-11-20T20:34:53.999+01:00" }));
    assert.equal(at(read.object, "status.startTime"), "2026-11-20T19:34:53Z");
  });
});

describe("field validation", () => {
  let server: TestApiServer;
  let client: TestClient;
  const path = "/api/v1/namespaces/default/pods";
  before(async () => {
    server = await TestApiServer.start({ schedules: false });
    client = new TestClient(server, server.credentials("admin", ["system:masters"]));
  });
  after(async () => {
    client[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  it("warns unless it is strict", async () => {
    const body = podNamed("odd", { colour: "red" });
    const strict = await client.request("POST", `${path}?fieldValidation=Strict`, { body });
    assert.equal(strict.code, 400);
    assert.match(strict.text, /strict decoding error: unknown field \\"spec\.colour\\"/);
    const lenient = await client.request("POST", path, { body });
    assert.equal(lenient.code, 201);
    assert.equal(lenient.headers["warning"], String.raw`299 - "unknown field \"spec.colour\""`);
    assert.equal(at(lenient.body, "spec.colour"), undefined);
    assert.deepEqual(server.requests.list("create pods").at(-1)?.warnings, ['unknown field "spec.colour"']);
  });
  it("applies to patches, too", async () => {
    server.admin.create(podNamed("patched"));
    const status = { containerStatuses: [{ name: "app", ready: "yes" }] };
    const patched = await client.request("PATCH", `${path}/patched/status`, {
      contentType: "application/merge-patch+json",
      body: { status },
    });
    assert.equal(patched.code, 400);
    assert.deepEqual(itemsAt(server.admin.get("pods", "default/patched"), "status.containerStatuses"), []);
  });
});
