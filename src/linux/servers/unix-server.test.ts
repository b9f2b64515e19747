import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { test } from "node:test";
import { ExitCode, PodwrightError } from "../../base/errors.ts";
import type { ApiHandler, ApiRequest, ApiServer } from "../../ports/api-server.ts";
import { systemClock } from "../processes/clock.ts";
import { testDirectory, type TestDirectory } from "../processes/testing.ts";
import { SocketError, unixTransport, type UnixTransport } from "../http/unix-client.ts";
import type { HttpServerOptions } from "./http-server.ts";
import { serveUnix } from "./unix-server.ts";

interface Fixture extends AsyncDisposable {
  readonly directory: TestDirectory;
  readonly path: string;
  readonly server: ApiServer;
  readonly client: UnixTransport;
}

async function start(handler: ApiHandler, options: HttpServerOptions = {}): Promise<Fixture> {
  const directory = testDirectory();
  const path = directory.join("api.sock");
  const server = await serveUnix(path, handler, options);
  return {
    directory,
    path,
    server,
    client: unixTransport(path),
    async [Symbol.asyncDispose]() {
      await server.close();
      directory[Symbol.dispose]();
    },
  };
}

const echo: ApiHandler = async (request) => ({
  status: 200,
  contentType: "application/json",
  body: JSON.stringify([request.method, request.path, [...request.query], await request.body()]),
});

async function until(condition: () => boolean): Promise<void> {
  for (let attempt = 0; attempt < 200 && !condition(); attempt++) await systemClock.sleep("a condition", 10);
  assert.ok(condition());
}

test("a request line may be as long as a command of exec", async () => {
  await using fixture = await start(echo);
  const word = "x".repeat(200_000);
  const answer = await fixture.client.request("POST", `/exec?command=${word}`, { body: "" });
  assert.equal(answer.status, 200);
  assert.deepEqual(JSON.parse(answer.body), ["POST", "/exec", [["command", word]], ""]);
});

test("method, path, query and body reach the handler, and its response returns", async () => {
  await using fixture = await start(echo);
  const answer = await fixture.client.request("POST", "/a%20b/c?x=1&x=2&y=", { body: "tëxt" });
  assert.equal(answer.status, 200);
  assert.equal(answer.contentType, "application/json");
  const expected = [
    "POST",
    "/a%20b/c",
    [
      ["x", "1"],
      ["x", "2"],
      ["y", ""],
    ],
    "tëxt",
  ];
  assert.deepEqual(JSON.parse(answer.body), expected);
});

test("the socket has mode 0600 under any umask, and its directory holds nothing else", async () => {
  const umask = process.umask(0);
  try {
    await using fixture = await start(echo);
    assert.equal(statSync(fixture.path).mode & 0o7777, 0o600);
    assert.deepEqual(readdirSync(fixture.directory.path), ["api.sock"]);
    await fixture.server.close();
    assert.deepEqual(readdirSync(fixture.directory.path), []);
  } finally {
    process.umask(umask);
  }
});

test("a socket with a live server is rejected and keeps working", async () => {
  await using fixture = await start(echo);
  await assert.rejects(serveUnix(fixture.path, echo), /another process listens/);
  assert.equal((await fixture.client.request("GET", "/")).status, 200);
});

test("a killed server's socket is replaced, and a file in its place is not", async () => {
  using directory = testDirectory();
  const path = directory.join("api.sock");
  const moduleUrl = new URL("./unix-server.ts", import.meta.url).href;
  const script = `import { serveUnix } from ${JSON.stringify(moduleUrl)};
    await serveUnix(${JSON.stringify(path)}, () => {}); console.log("up");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
  assert.ok(existsSync(path));
  // From a server that was killed a moment earlier.
  mkdirSync(directory.join(".aB3xYz"));
  writeFileSync(directory.join(".aB3xYz/s"), "");
  await assert.rejects(unixTransport(path).request("GET", "/"), { name: "SocketError", code: "ECONNREFUSED" });
  await using server = await serveUnix(path, echo);
  assert.deepEqual(readdirSync(directory.path), ["api.sock"]);
  assert.equal((await unixTransport(path).request("GET", "/")).status, 200);
  await server.close();

  writeFileSync(path, "precious");
  await assert.rejects(serveUnix(path, echo), /is not a socket/);
  assert.ok(existsSync(path));
});

test("closing keeps a socket that another server has put in its place", async () => {
  await using fixture = await start(echo);
  spawnSync("rm", [fixture.path]);
  await using other = await serveUnix(fixture.path, echo);
  await fixture.server.close();
  assert.equal((await unixTransport(other.address).request("GET", "/")).status, 200);
});

test("a path too long for a socket is an error that says so", async () => {
  using directory = testDirectory();
  await assert.rejects(serveUnix(directory.join("x".repeat(100)), echo), /longer than 107 bytes/);
});

test("errors become responses: by exit code for people, 500 and a report for defects", async () => {
  const reports: unknown[] = [];
  const thrown: Record<string, Error> = {
    "/bad": new PodwrightError(ExitCode.badInput, "bad manifest", { remedy: "Mend it." }),
    "/failed": new PodwrightError(ExitCode.failed, "no such pod"),
    "/environment": new PodwrightError(ExitCode.environment, "no runtime"),
    "/defect": new TypeError("undefined is not a function"),
  };
  const handler: ApiHandler = ({ path }) => Promise.reject(thrown[path] ?? new Error("unknown path"));
  await using fixture = await start(handler, { onError: (error, { path }) => reports.push([path, error]) });
  const answer = async (path: string): Promise<[number, unknown]> => {
    const { status, body } = await fixture.client.request("GET", path);
    return [status, JSON.parse(body)];
  };
  assert.deepEqual(await answer("/bad"), [400, { error: "bad manifest", remedy: "Mend it.", exitCode: 2 }]);
  assert.deepEqual(await answer("/failed"), [422, { error: "no such pod", exitCode: 1 }]);
  assert.deepEqual(await answer("/environment"), [503, { error: "no runtime", exitCode: 3 }]);
  assert.deepEqual(await answer("/defect"), [500, { error: "undefined is not a function", exitCode: 1 }]);
  assert.deepEqual(reports, [["/defect", thrown["/defect"]]]);

  const lines = fixture.client.lines("/bad", {});
  await assert.rejects(lines[Symbol.asyncIterator]().next(), (error) => {
    return error instanceof PodwrightError && error.exitCode === ExitCode.badInput && error.remedy === "Mend it.";
  });
});

test("an oversized body is rejected, with and without a declared length", async () => {
  await using fixture = await start(echo, { maxBodyBytes: 1_000 });
  assert.equal((await fixture.client.request("POST", "/", { body: "x".repeat(1_000) })).status, 200);
  const refused = await fixture.client.request("POST", "/", { body: "x".repeat(1_001) });
  assert.equal(refused.status, 413);
  assert.match(refused.body, /longer than 1000 bytes/);

  const socket = connect(fixture.path);
  const chunk = `400\r\n${"x".repeat(1024)}\r\n`;
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`);
  socket.on("error", () => {});
  socket.resume();
  await once(socket, "close");
  assert.equal((await fixture.client.request("GET", "/")).status, 200);
});

test("a stream's lines arrive as they are produced, whole whatever the chunks", async () => {
  const gate = Promise.withResolvers<undefined>();
  const handler: ApiHandler = () => {
    async function* body(): AsyncGenerator<string | Uint8Array> {
      yield "one\ntw";
      yield Buffer.from("o ä").subarray(0, 3);
      yield Buffer.from("ä").subarray(1);
      yield "\n\n";
      await gate.promise;
      yield "last";
    }
    return Promise.resolve({ status: 200, contentType: "text/plain", body: body() });
  };
  await using fixture = await start(handler);
  const received: string[] = [];
  for await (const line of fixture.client.lines("/", {})) {
    received.push(line);
    if (received.length === 3) gate.resolve(undefined);
  }
  assert.deepEqual(received, ["one", "two ä", "", "last"]);
});

test("a slow client slows the stream down", async () => {
  let made = 0;
  const handler: ApiHandler = () => {
    async function* body(): AsyncGenerator<string> {
      for (; made < 5_000; made++) yield `${"x".repeat(9_999)}\n`;
    }
    return Promise.resolve({ status: 200, contentType: "text/plain", body: body() });
  };
  await using fixture = await start(handler);
  let received = 0;
  for await (const _line of fixture.client.lines("/", {})) {
    if (++received === 1) {
      await systemClock.sleep("the server to run ahead if it would", 200);
      assert.ok(made < 1_000, `${made} lines were made`);
    }
  }
  assert.equal(received, 5_000);
});

test("a slow client gets the whole of a stream with multi-byte characters", async () => {
  const line = `${"…".repeat(20)}${"x".repeat(80)}`;
  let made = 0;
  const handler: ApiHandler = () => {
    async function* body(): AsyncGenerator<string> {
      for (; made < 10_000; made++) yield `${line}\n`;
    }
    return Promise.resolve({ status: 200, contentType: "text/plain", body: body() });
  };
  await using fixture = await start(handler);
  let received = 0;
  for await (const text of fixture.client.lines("/", { signal: AbortSignal.timeout(10_000) })) {
    assert.equal(text, line);
    if (++received % 1_000 === 1) await systemClock.sleep("the server to fill what lies between", 20);
  }
  assert.equal(received, 10_000);
});

test("a client that leaves while data is buffered ends the stream", async () => {
  let [made, ended] = [0, false];
  const handler: ApiHandler = () => {
    async function* body(): AsyncGenerator<string> {
      try {
        for (;;) yield `${++made} ${"…".repeat(100)}\n`;
      } finally {
        ended = true;
      }
    }
    return Promise.resolve({ status: 200, contentType: "text/plain", body: body() });
  };
  await using fixture = await start(handler);
  for await (const _line of fixture.client.lines("/", {})) {
    await systemClock.sleep("the server to fill what lies between", 100);
    break;
  }
  await until(() => ended);
  assert.ok(made < 10_000, `${made} lines were made`);
});

/** A handler whose stream yields one line and then waits for its signal. */
function waitingStream(): { readonly handler: ApiHandler; readonly ended: () => boolean } {
  let ended = false;
  async function* body({ signal }: ApiRequest): AsyncGenerator<string> {
    try {
      yield "first\n";
      await systemClock.sleep("the client to leave", 600_000, signal);
    } finally {
      ended = true;
    }
  }
  const handler: ApiHandler = (request) =>
    Promise.resolve({ status: 200, contentType: "text/plain", body: body(request) });
  return { handler, ended: () => ended };
}

test("a client that leaves ends the stream and aborts the request's signal", async () => {
  const { handler, ended } = waitingStream();
  await using fixture = await start(handler);
  for await (const line of fixture.client.lines("/", {})) {
    assert.equal(line, "first");
    break;
  }
  await until(ended);

  const waiting = waitingStream();
  await using second = await start(waiting.handler);
  const controller = new AbortController();
  const reason = new Error("Ctrl-C");
  const reading = (async () => {
    for await (const _line of second.client.lines("/", { signal: controller.signal })) controller.abort(reason);
  })();
  await assert.rejects(reading, reason);
  await until(waiting.ended);
});

test("a client that leaves while the handler works aborts its signal, and the outcome is not reported", async () => {
  const controller = new AbortController();
  const reports: unknown[] = [];
  let aborted = false;
  const handler: ApiHandler = async ({ signal }) => {
    controller.abort(new Error("Ctrl-C"));
    await once(signal, "abort");
    aborted = true;
    throw new Error("for nobody");
  };
  await using fixture = await start(handler, { onError: (error) => reports.push(error) });
  await assert.rejects(fixture.client.request("GET", "/", { signal: controller.signal }), /Ctrl-C/);
  await until(() => aborted);
  await fixture.server.close();
  assert.deepEqual(reports, []);
});

test("closing ends streams cleanly at once, and hung requests after the grace time", async () => {
  const { handler, ended } = waitingStream();
  await using fixture = await start(handler);
  const received: string[] = [];
  for await (const line of fixture.client.lines("/", {})) {
    received.push(line);
    void fixture.server.close();
  }
  assert.deepEqual(received, ["first"]);
  await until(ended);
  await fixture.server.close();
  await assert.rejects(fixture.client.request("GET", "/"), { name: "SocketError", code: "ENOENT" });

  await using hung = await start(() => new Promise(() => {}), { closeGraceMs: 50 });
  const rejected = assert.rejects(hung.client.request("GET", "/"), SocketError);
  await systemClock.sleep("the request to arrive", 50);
  await hung.server.close();
  await rejected;
});

test("a stream that breaks off does not look complete", async () => {
  const reports: unknown[] = [];
  const broken = new Error("the disk is gone");
  const handler: ApiHandler = () => {
    async function* body(): AsyncGenerator<string> {
      yield "one\n";
      await systemClock.sleep("the line to be sent", 20);
      throw broken;
    }
    return Promise.resolve({ status: 200, contentType: "text/plain", body: body() });
  };
  await using fixture = await start(handler, { onError: (error) => reports.push(error) });
  const received: string[] = [];
  const reading = (async () => {
    for await (const line of fixture.client.lines("/", {})) received.push(line);
  })();
  await assert.rejects(reading, { name: "SocketError", code: "ECONNRESET" });
  assert.deepEqual(received, ["one"]);
  assert.deepEqual(reports, [broken]);
});

test("invalid HTTP and invalid paths affect no other client", async () => {
  await using fixture = await start(echo);
  for (const text of [
    "nonsense\r\n\r\n",
    "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
  ]) {
    const socket = connect(fixture.path);
    socket.on("error", () => {});
    socket.resume();
    socket.write(text);
    await once(socket, "close");
  }
  const answer = await fixture.client.request("GET", "//x/y");
  assert.equal(JSON.parse(answer.body)[1], "//x/y");
});
