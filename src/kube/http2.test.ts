import assert from "node:assert/strict";
import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { after, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { until } from "../../test/support/podwright.ts";
import { defaultLiveness, Http2Connection } from "./http2.ts";

const opened: Disposable[] = [];
after(() => {
  for (const each of opened) each[Symbol.dispose]();
});

async function listen(server: Server): Promise<number> {
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  opened.push({ [Symbol.dispose]: () => void server.close() });
  return (server.address() as AddressInfo).port;
}

/** The type of a frame (RFC 9113, 4.1): its fourth byte. */
const pingFrame = 6;
const pingLength = 17;

/**
 * A connection to a server that answers all and never ends `/wait`, through a line that can be cut without a word, or lose
 * the answers to pings.
 */
async function connected(clock: ManualClock, loses: "nothing" | "pings" = "nothing") {
  const server = createHttp2Server();
  server.on("stream", (stream: ServerHttp2Stream, { ":path": path }) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 200 });
    if (path === "/wait") stream.write("first\n");
    else stream.end("ok");
  });
  const target = await listen(server);
  let isCut = false;
  const line = createServer((client) => {
    const onward = connect(target, "127.0.0.1");
    client.on("data", (data) => void (isCut || onward.write(data))).on("error", () => {});
    onward
      .on("error", () => {})
      .on("data", (data: Buffer) => {
        const isLost = loses === "pings" && data[3] === pingFrame;
        if (!isCut) client.write(isLost ? data.subarray(pingLength) : data);
      });
    client.on("close", () => onward.destroy());
  });
  const port = await listen(line);
  const endpoint = { url: new URL(`http://127.0.0.1:${port}`), ca: undefined, serverName: undefined, insecure: false };
  const connection = new Http2Connection(endpoint, connect(port, "127.0.0.1"), clock, defaultLiveness);
  opened.push({ [Symbol.dispose]: () => connection.close() });
  await connection.settle(AbortSignal.timeout(10_000));
  return { connection, cut: () => (isCut = true) };
}

async function get(connection: Http2Connection, path: string): Promise<string> {
  const request = { lane: "objects", method: "GET", path, headers: {}, signal: new AbortController().signal } as const;
  let text = "";
  for await (const chunk of (await connection.send(request, {})).body) text += Buffer.from(chunk).toString();
  return text;
}

test("a half-dead connection is dropped at most nine seconds after its last byte, one that answers is not", async () => {
  const clock = new ManualClock();
  const { connection, cut } = await connected(clock);
  const ended = assert.rejects(get(connection, "/wait"), /no data received for 4 s/);
  await clock.advance(5000);
  await until("the answer to a ping", async () => clock.waits.includes("data from the API server"));
  // The last response comes right after.
  assert.equal(await get(connection, "/"), "ok");
  cut();
  await clock.advance(8999);
  assert.ok(connection.isOpen);
  await clock.advance(1);
  assert.ok(!connection.isOpen);
  await ended;
});

test("requests on a connection that takes no more continue while it answers", async () => {
  const clock = new ManualClock();
  const { connection, cut } = await connected(clock);
  const watch = get(connection, "/wait");
  const ended = assert.rejects(watch, /no data received for 4 s/);
  assert.equal(await get(connection, "/"), "ok");
  let over = false;
  connection.retire(() => (over = true));
  assert.ok(!connection.isOpen);
  for (let pings = 0; pings < 3; pings++) {
    await clock.advance(5000);
    await until("the answer to a ping", async () => clock.waits.includes("data from the API server"));
  }
  assert.ok(!over);
  cut();
  await clock.advance(9000);
  await ended;
  await until("its end", async () => over);
});

test("while anything comes a connection is not dropped for an answer that is late", async () => {
  const clock = new ManualClock();
  const { connection } = await connected(clock, "pings");
  await clock.advance(5000);
  assert.equal(await get(connection, "/"), "ok");
  await clock.advance(4000);
  assert.ok(connection.isOpen);
  await clock.advance(4000);
  assert.ok(!connection.isOpen);
});
