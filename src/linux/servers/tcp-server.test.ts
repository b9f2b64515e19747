import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiRequest, ApiResponse } from "../../ports/api-server.ts";
import { serveTcp } from "./tcp-server.ts";

async function echo(request: ApiRequest): Promise<ApiResponse> {
  return { status: 200, contentType: "text/plain", body: `${request.method} ${request.path}` };
}

test("a TCP server responds on a free port and is gone after close", async () => {
  const server = await serveTcp({ host: "127.0.0.1", port: 0 }, echo);
  const url = `http://${server.address}/healthz?verbose`;
  assert.equal(await (await fetch(url)).text(), "GET /healthz");
  await server.close();
  await assert.rejects(fetch(url));
});
