import assert from "node:assert/strict";
import * as http2 from "node:http2";
import { createServer, type Server } from "node:net";
import { test } from "node:test";
import { startCriServer } from "../../test/support/cri-server.ts";
import { testDirectory } from "../linux/processes/testing.ts";
import { isCriError } from "../ports/cri.ts";
import type { RpcCode } from "../ports/rpc.ts";
import { connectCri } from "../cri/client.ts";
import { systemClock } from "../linux/processes/clock.ts";

const pause = (delayMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, delayMs));
const never = (): Promise<never> => new Promise(() => {});

function codeOf(call: Promise<unknown>): Promise<RpcCode | "answered" | "no CriError"> {
  return call.then(
    () => "answered",
    (error: unknown) => (isCriError(error) ? error.code : "no CriError"),
  );
}

test("killing a runtime during calls makes them Unavailable, unary and streaming", async () => {
  const begun = Promise.withResolvers<void>();
  await using server = await startCriServer({
    runtime: {
      status: () => {
        begun.resolve();
        return never();
      },
      async *getContainerEvents() {
        yield { containerId: "c" };
        await never();
      },
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  const stream = cri.runtime.getContainerEvents({})[Symbol.asyncIterator]();
  await stream.next();
  const calls = [codeOf(cri.runtime.status({})), codeOf(stream.next())];
  await begun.promise;
  await server.kill();
  assert.deepEqual(await Promise.all(calls), ["Unavailable", "Unavailable"]);
  assert.equal((await stream.next()).done, true);
});

test("calls during an outage fail fast and the first one after it succeeds", async () => {
  await using server = await startCriServer({ runtime: { version: () => ({ runtimeName: "x" }) } });
  using cri = connectCri(server.endpoint, systemClock);
  await cri.runtime.version({});
  for (let outage = 0; outage < 3; outage++) {
    await server.kill();
    for (let attempt = 0; attempt < 20; attempt++) {
      const started = performance.now();
      assert.equal(await codeOf(cri.runtime.version({})), "Unavailable");
      assert.ok(performance.now() - started < 100);
    }
    await server.start();
    const started = performance.now();
    assert.equal((await cri.runtime.version({})).runtimeName, "x");
    assert.ok(performance.now() - started < 200);
  }
});

test("the connection reopens by itself and reports loss and return", async () => {
  await using server = await startCriServer({ runtime: { version: () => ({ runtimeName: "x" }) } });
  const changes: string[] = [];
  const found = Promise.withResolvers<void>();
  using cri = connectCri(server.endpoint, systemClock, {
    onConnectionChange: (_endpoint, change) => {
      changes.push(change.state);
      if (changes.length === 3) found.resolve();
    },
  });
  await cri.runtime.version({});
  await server.kill();
  await pause(150);
  await server.start();
  await found.promise;
  assert.deepEqual(changes, ["connected", "lost", "connected"]);
  await cri.runtime.version({});
  assert.equal(server.connections, 2);
});

test("after a GOAWAY calls in progress finish and the next one uses a new connection", async () => {
  const begun = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  await using server = await startCriServer({
    runtime: {
      version: () => ({ runtimeName: "x" }),
      status: async () => {
        begun.resolve();
        await finish.promise;
        return {};
      },
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  const slow = codeOf(cri.runtime.status({}));
  await begun.promise;
  server.sayGoodbye();
  await pause(20);
  assert.equal(await codeOf(cri.runtime.version({})), "answered");
  finish.resolve();
  assert.equal(await slow, "answered");
  assert.equal(server.connections, 2);
});

test("closing the client cancels calls in progress and rejects later ones", async () => {
  const begun = Promise.withResolvers<void>();
  await using server = await startCriServer({
    runtime: {
      status: () => {
        begun.resolve();
        return never();
      },
    },
  });
  const cri = connectCri(server.endpoint, systemClock);
  const call = codeOf(cri.runtime.status({}));
  await begun.promise;
  cri[Symbol.dispose]();
  assert.equal(await call, "Canceled");
  assert.equal(await codeOf(cri.runtime.status({})), "Canceled");
  cri[Symbol.dispose]();
});

/** Serves a socket until disposed of. */
async function listen(server: Server, path: string): Promise<AsyncDisposable> {
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())) };
}

const ok = { "grpc-status": "0" };

/** Gives every call the same response. */
function answering(
  body: Buffer,
  trailers: http2.OutgoingHttpHeaders = ok,
  head: http2.OutgoingHttpHeaders = {},
): Server {
  return http2.createServer().on("stream", (stream: http2.ServerHttp2Stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc", ...head }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.end(body);
  });
}

const brokenServers: readonly (readonly [name: string, server: () => Server, code: RpcCode])[] = [
  [
    "speaks HTTP/1",
    () => createServer((socket) => socket.resume().end("HTTP/1.1 400 Bad Request\r\n\r\n")),
    "Unavailable",
  ],
  ["hangs up", () => createServer((socket) => socket.destroy()), "Unavailable"],
  ["is no gRPC server", () => http2.createServer((_request, response) => response.writeHead(503).end()), "Unavailable"],
  ["resets streams", () => http2.createServer().on("stream", (stream) => stream.close(2)), "Unavailable"],
  ["closes streams", () => http2.createServer().on("stream", (stream) => stream.close(0)), "Unavailable"],
  [
    "sends no status",
    () =>
      http2.createServer().on("stream", (stream: http2.ServerHttp2Stream) => {
        stream.respond({ ":status": 200, "content-type": "application/grpc" });
        stream.end();
      }),
    "Internal",
  ],
  ["says a status that there is not", () => answering(Buffer.alloc(0), { "grpc-status": "77" }), "Internal"],
  ["says its status in words", () => answering(Buffer.alloc(0), { "grpc-status": "OK" }), "Internal"],
  ["ends within a message", () => answering(Buffer.from([0, 0, 0, 0, 9, 1])), "Internal"],
  ["compresses what nobody asked it to", () => answering(Buffer.from([1, 0, 0, 0, 1, 0])), "Internal"],
  ["answers with a page", () => answering(Buffer.from("<p>"), ok, { "content-type": "text/html" }), "Internal"],
  ["has no such path", () => answering(Buffer.from("404"), ok, { ":status": 404 }), "Internal"],
];

test("a response with no message or with two is an error", async () => {
  for (const body of [Buffer.alloc(0), Buffer.alloc(10)]) {
    using directory = testDirectory();
    await using _listening = await listen(answering(body), directory.join("s"));
    using cri = connectCri(directory.join("s"), systemClock);
    assert.equal(await codeOf(cri.runtime.version({})), "Internal");
  }
});

for (const [name, makeServer, code] of brokenServers) {
  test(`a socket whose owner ${name} gives errors, and neither a crash nor a wait for ever`, async () => {
    using directory = testDirectory();
    const path = directory.join("s");
    const server = makeServer();
    server.on("stream", (stream: http2.ServerHttp2Stream) => stream.on("error", () => {}));
    await using _listening = await listen(server, path);
    using cri = connectCri(path, systemClock);
    assert.equal(await codeOf(cri.runtime.version({})), code);
    assert.equal(await codeOf(cri.runtime.getContainerEvents({})[Symbol.asyncIterator]().next()), code);
  });
}
