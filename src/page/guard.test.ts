import assert from "node:assert/strict";
import { test } from "node:test";
import { systemHashing } from "../linux/files/hashing.ts";
import { systemRandom } from "../linux/processes/random.ts";
import type { ApiResponse } from "../ports/api-server.ts";
import { PageGuard } from "./guard.ts";

const host = "127.0.0.1:4000";

function guarded(): PageGuard {
  const answer = (body: string) => async (): Promise<ApiResponse> => ({ status: 200, contentType: "text/plain", body });
  const hosts = [host, "localhost:4000"];
  return new PageGuard({
    files: answer("file"),
    data: answer("data"),
    random: systemRandom,
    hashing: systemHashing,
    hosts,
  });
}

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function ask(
  guard: PageGuard,
  path: string,
  { method = "GET", headers = {}, body = "" }: Asked = {},
): Promise<ApiResponse> {
  const { signal } = new AbortController();
  return await guard.handle({
    ...{ method, path, signal, query: new URLSearchParams() },
    headers: { host, ...headers },
    body: async () => body,
  });
}

async function openSession(guard: PageGuard): Promise<string> {
  const answer = await ask(guard, "/ui/session", { method: "POST", body: guard.code });
  assert.equal(answer.status, 200);
  return (JSON.parse(answer.body as string) as { session: string }).session;
}

test("the code in the link opens one session, and only this session gets the node's data", async () => {
  const guard = guarded();
  assert.equal((await ask(guard, "/ui/")).body, "file");
  assert.equal((await ask(guard, "/ui/api/events")).status, 401);
  assert.equal((await ask(guard, "/ui/api/events", { headers: { authorization: "Bearer " } })).status, 401);
  assert.equal((await ask(guard, "/ui/session", { method: "POST", body: "00" })).status, 401);
  const session = await openSession(guard);
  assert.equal((await ask(guard, "/ui/api/events", { headers: { authorization: `Bearer ${session}` } })).body, "data");
  assert.equal(
    (await ask(guard, "/ui/api/events", { headers: { authorization: `Bearer ${guard.code}` } })).status,
    401,
  );
  assert.equal((await ask(guard, "/ui/session", { method: "POST", body: guard.code })).status, 401);
  assert.equal((await ask(guard, "/ui/session", { method: "POST", body: session })).status, 401);
});

test("a foreign host name is rejected, and so is another site's request for a session", async () => {
  const guard = guarded();
  for (const other of ["evil.example", "evil.example:4000", "127.0.0.1:4001", "127.0.0.1", ""]) {
    assert.equal((await ask(guard, "/ui/", { headers: { host: other } })).status, 421, other);
    assert.equal(
      (await ask(guard, "/ui/session", { method: "POST", body: guard.code, headers: { host: other } })).status,
      421,
    );
  }
  for (const origin of ["http://evil.example", "null", "https://127.0.0.1:4000"]) {
    const answer = await ask(guard, "/ui/session", { method: "POST", body: guard.code, headers: { origin } });
    assert.equal(answer.status, 403, origin);
  }
  await openSession(guard);
});

test("every response forbids the browser to run, load or frame anything else", async () => {
  const guard = guarded();
  for (const path of ["/", "/ui/session", "/ui/api/events", "/elsewhere"]) {
    const { headers = {} } = await ask(guard, path);
    assert.match(headers["Content-Security-Policy"] ?? "", /^default-src 'none'; script-src 'self';/, path);
    assert.equal(headers["X-Content-Type-Options"], "nosniff");
    assert.equal(headers["Referrer-Policy"], "no-referrer");
  }
});
