import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiResponse } from "../ports/api-server.ts";
import { type HealthzCheck, healthzRoutes } from "./healthz.ts";

async function get(target: string, checks: readonly HealthzCheck[] = []): Promise<ApiResponse> {
  const [path = "", query = ""] = target.split("?");
  const { signal } = new AbortController();
  const body = async (): Promise<string> => "";
  return healthzRoutes(() => checks)({ method: "GET", path, query: new URLSearchParams(query), body, signal });
}

const stuck: HealthzCheck = { name: "pleg", ok: false, detail: "last listing 200.0 s ago" };

test("healthz and ping report that the process responds, whatever the state of its loops", async () => {
  for (const path of ["/healthz", "/healthz/ping"]) {
    assert.deepEqual(await get(path, [stuck]), { status: 200, contentType: "text/plain; charset=utf-8", body: "ok" });
  }
  assert.equal((await get("/healthz?verbose")).body, "[+]ping ok\nhealthz check passed\n");
});

test("syncloop fails when a loop is stuck, and names it", async () => {
  assert.equal((await get("/healthz/syncloop", [{ ...stuck, ok: true }])).status, 200);
  const { status, body } = await get("/healthz/syncloop", [stuck]);
  assert.equal(status, 500);
  assert.equal(body, "internal server error: pleg: last listing 200.0 s ago\n");
});

test("there is nothing else", async () => {
  for (const path of ["/", "/metrics", "/healthz/", "/pods"]) assert.equal((await get(path)).status, 404, path);
});
