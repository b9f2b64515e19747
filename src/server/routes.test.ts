import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeEngine } from "../../test/support/fake-engine.ts";
import { podView } from "../../test/support/pod-views.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { ApiHandler, ApiResponse } from "../ports/api-server.ts";
import type { EvictionPreview, Plan } from "./local-api.ts";
import { localApiRoutes } from "./routes.ts";

async function ask(handler: ApiHandler, method: string, target: string, body = ""): Promise<ApiResponse> {
  const [path = "", query = ""] = target.split("?");
  const signal = new AbortController().signal;
  return handler({ method, path, query: new URLSearchParams(query), body: async () => body, signal });
}

function jsonOf(response: ApiResponse): unknown {
  assert.equal(typeof response.body, "string");
  return JSON.parse(response.body as string);
}

const isBadInput = (error: unknown): boolean => error instanceof PodwrightError && error.exitCode === ExitCode.badInput;

test("pods are read and stopped by a selector that may contain a slash", async () => {
  const engine = new FakeEngine();
  engine.views.set("uid-web", podView({}));
  const handler = localApiRoutes(engine);
  assert.deepEqual(
    jsonOf(await ask(handler, "GET", "/v1/pods/default%2Fweb")),
    jsonOf(await ask(handler, "GET", "/v1/pods/uid-web")),
  );
  assert.equal((jsonOf(await ask(handler, "GET", "/v1/pods/web")) as { uid: string }).uid, "uid-web");
  assert.equal((await ask(handler, "POST", "/v1/pods/default%2Fweb/stop?grace=7")).status, 200);
  assert.deepEqual(engine.stops, [{ uid: "uid-web", graceSeconds: 7 }]);
  engine.end();
});

test("an ephemeral container is requested with a command", async () => {
  const engine = new FakeEngine();
  engine.views.set("uid-web", podView({}));
  const handler = localApiRoutes(engine);
  const body = JSON.stringify({ image: "busybox", command: ["ps"] });
  const answer = jsonOf(await ask(handler, "POST", "/v1/pods/web/debug", body));
  assert.equal((answer as { container: string }).container, "debugger-0");
  for (const bad of ["", "[]", '{"command": "ps"}', '{"command": [1]}', '{"command": [], "image": 1}']) {
    await assert.rejects(ask(handler, "POST", "/v1/pods/web/debug", bad), isBadInput, bad);
  }
});

test("a plan is requested with and without objects", async () => {
  const engine = new FakeEngine();
  engine.views.set("uid-web", podView({}));
  const handler = localApiRoutes(engine);
  const names = (response: ApiResponse): string[] => (jsonOf(response) as Plan).pods.map(({ name }) => name);
  assert.deepEqual(names(await ask(handler, "GET", "/v1/plan")), ["web"]);
  const body = JSON.stringify({ pods: [{ metadata: { name: "db" }, spec: {} }], configMaps: [], secrets: [] });
  assert.deepEqual(names(await ask(handler, "POST", "/v1/plan", body)), ["web", "db"]);
  await assert.rejects(ask(handler, "POST", "/v1/plan", "[]"), isBadInput);
  const noList = JSON.stringify({ pods: [], configMaps: [], secrets: [], storage: {} });
  await assert.rejects(ask(handler, "POST", "/v1/apply", noList), isBadInput);
});

test("claims are listed, and removed by namespace and name", async () => {
  const engine = new FakeEngine();
  const handler = localApiRoutes(engine);
  assert.deepEqual(jsonOf(await ask(handler, "GET", "/v1/claims")), []);
  assert.deepEqual(jsonOf(await ask(handler, "GET", "/v1/free-volumes")), []);
  const removal = await ask(handler, "POST", "/v1/claims/tools%2Fdata/remove");
  assert.deepEqual(jsonOf(removal), { namespace: "tools", name: "data" });
  assert.deepEqual(engine.removals, ["tools/data"]);
});

test("the eviction order is requested by signal, and pending evictions are confirmed", async () => {
  const engine = new FakeEngine();
  const handler = localApiRoutes(engine);
  const signalOf = async (path: string): Promise<string> =>
    (jsonOf(await ask(handler, "GET", path)) as EvictionPreview).signal;
  assert.equal(await signalOf("/v1/evictions"), "memory.available");
  assert.equal(await signalOf("/v1/evictions?signal=pid.available"), "pid.available");
  await ask(handler, "POST", "/v1/evictions/confirm");
  assert.equal(engine.confirmed, true);
});

test("unknown paths, methods and broken encodings get errors", async () => {
  const handler = localApiRoutes(new FakeEngine());
  for (const path of ["/", "/v1", "/v1/pods/", "/v1/pods/a/b", "/v1/pods/%zz", "/v2/pods"]) {
    const response = await ask(handler, "GET", path);
    assert.equal(response.status, 404, path);
    assert.deepEqual(jsonOf(response), { error: `${path} not found`, exitCode: 2 });
  }
  assert.equal((await ask(handler, "POST", "/v1/pods")).status, 405);
  assert.equal((await ask(handler, "DELETE", "/v1/health")).status, 405);
});

test("malformed bodies and queries are bad input", async () => {
  const handler = localApiRoutes(new FakeEngine());
  for (const body of ["", "[]", "null", '{"pods":[]}', '{"pods":{},"configMaps":[],"secrets":[]}']) {
    await assert.rejects(ask(handler, "POST", "/v1/apply", body), isBadInput, body);
  }
  for (const target of ["/v1/pods/web/stop?grace=-1", "/v1/pods/web/stop?grace=soon", "/v1/shutdown?mode=now"]) {
    await assert.rejects(ask(handler, "POST", target), isBadInput, target);
  }
  await assert.rejects(ask(handler, "GET", "/v1/journal?since=x"), isBadInput);
});

test("the journal is a stream of one JSON value per line, from a sequence number on", async () => {
  const engine = new FakeEngine();
  for (const message of ["One", "Two", "Three"]) engine.record({ kind: "note", what: "PodsFound", message });
  const response = await ask(localApiRoutes(engine), "GET", "/v1/journal?since=2");
  assert.equal(response.contentType, "application/x-ndjson");
  let text = "";
  assert.notEqual(typeof response.body, "string");
  for await (const part of response.body as AsyncIterable<string>) text += part;
  const entries = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { message: string });
  assert.deepEqual(
    entries.map(({ message }) => message),
    ["Two", "Three"],
  );
});
