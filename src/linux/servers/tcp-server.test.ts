import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
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

test("clients that only connect, or stop within a request, keep no other from being answered", async () => {
  await using server = await serveTcp({ host: "127.0.0.1", port: 0 }, echo, {
    limits: { connections: 4, pendingBytes: 1e6 },
  });
  const [host = "", port = ""] = server.address.split(":");
  const clients: Socket[] = [];
  for (let index = 0; index < 10; index++) {
    const client = connect({ host, port: Number(port) }).on("error", () => {});
    clients.push(client);
    await once(client, "connect");
    if (index % 2 === 0) client.write("GET /healthz HTTP/1.1\r\n");
  }
  try {
    for (let round = 0; round < 3; round++) {
      assert.equal(await (await fetch(`http://${server.address}/healthz`)).text(), "GET /healthz");
    }
  } finally {
    for (const client of clients) client.destroy();
  }
});

test("clients above the limit are not answered while as many others are", async () => {
  const release = Promise.withResolvers<void>();
  const slow = async (request: ApiRequest): Promise<ApiResponse> => {
    await release.promise;
    return await echo(request);
  };
  await using server = await serveTcp({ host: "127.0.0.1", port: 0 }, slow, {
    limits: { connections: 2, pendingBytes: 1e6 },
  });
  const url = `http://${server.address}/`;
  const answers = [fetch(url), fetch(url)];
  await new Promise((done) => setTimeout(done, 100));
  await assert.rejects(fetch(url));
  release.resolve();
  for (const answer of answers) assert.equal((await answer).status, 200);
});
