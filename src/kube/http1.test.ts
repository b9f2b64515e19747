import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { systemClock } from "../linux/processes/clock.ts";
import { Http1Connections } from "./http1.ts";

test("a watch that is silent for too long ends, with its connection", async () => {
  const server = createServer((_request, response) => void response.writeHead(200).write("first\n"));
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const closed = once(server, "connection").then(async ([socket]: Socket[]) => socket && (await once(socket, "close")));
  const endpoint = { url, ca: undefined, serverName: undefined, insecure: false };
  const connections = new Http1Connections(endpoint, { token: undefined, certificate: undefined }, systemClock, 1000);
  try {
    const { signal } = new AbortController();
    const watch = await connections.send({ lane: "objects", method: "GET", path: "/", headers: {}, signal }, {});
    await assert.rejects(async () => {
      for await (const _ of watch.body);
    }, /^KubeConnectionError: .*no data received for 1 s/);
    await closed;
  } finally {
    connections.close();
    server.close();
  }
});
