import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { ApiRequest, ApiResponse } from "../../ports/api-server.ts";
import { serveTcp } from "../servers/tcp-server.ts";

/** Asks with an upgrade for a response that goes on without a word after its beginning. */
async function follow(): Promise<AsyncDisposable & { readonly client: Socket; readonly ended: Promise<unknown> }> {
  const { promise: ended, resolve } = Promise.withResolvers<unknown>();
  async function* body(signal: AbortSignal): AsyncGenerator<string> {
    yield "a line\n";
    await once(signal, "abort");
    resolve(signal.reason);
  }
  const handler = async ({ signal }: ApiRequest): Promise<ApiResponse> => {
    return { status: 200, contentType: "text/plain", body: body(signal) };
  };
  const server = await serveTcp({ host: "127.0.0.1", port: 0 }, handler, { streamingIdleMs: 60_000 });
  const [host = "", port = ""] = server.address.split(":");
  const client = connect({ host, port: Number(port), allowHalfOpen: true });
  client.on("error", () => {});
  client.write("GET /containerLogs/a/b/c?follow=true HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  let text = "";
  client.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  while (!text.endsWith("a line\n")) await once(client, "data");
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
  return {
    client,
    ended,
    [Symbol.asyncDispose]: async () => {
      client.destroy();
      await server.close();
    },
  };
}

test("a response to a request with an Upgrade header goes on until its client disconnects", async () => {
  await using asked = await follow();
  asked.client.destroy();
  assert.match(String(await asked.ended), /the client disconnected/);
});

test("a reset of its connection ends it too", async () => {
  await using asked = await follow();
  asked.client.resetAndDestroy();
  assert.match(String(await asked.ended), /the client disconnected/);
});

test("what its client still sends is dropped", async () => {
  await using asked = await follow();
  asked.client.write(Buffer.alloc(1_000_000));
  await new Promise((done) => asked.client.write("x", done));
  asked.client.end();
  assert.match(String(await asked.ended), /the client disconnected/);
});

test("it ends with the server", async () => {
  await using asked = await follow();
  await asked[Symbol.asyncDispose]();
  assert.match(String(await asked.ended), /the (?:server is closing|client disconnected)/);
});
