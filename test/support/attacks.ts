import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { request } from "node:https";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { deflateSync } from "node:zlib";
import type { HostileServer } from "./hostile-server.ts";
import { mallocSettings, nodeFlags } from "../../scripts/launch.ts";
import { sleep } from "./podwright.ts";

/** Seeded random numbers (mulberry32). */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 to below the limit. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return Math.floor((((value ^ (value >>> 14)) >>> 0) / 2 ** 32) * limit);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }
}

/** The kubelet's API in its own process, as a target. */
export class Target implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #server: HostileServer;
  /** Errors that the server considers its own defects. */
  readonly defects: unknown[] = [];

  private constructor(child: ChildProcess, server: HostileServer) {
    this.#child = child;
    this.#server = server;
    child.on("message", (message) => this.defects.push(message));
  }

  static async start(): Promise<Target> {
    // Started like a node by bin/podwright, because its memory is measured.
    const child = fork(join(import.meta.dirname, "hostile-server.ts"), {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      execArgv: [...nodeFlags],
      env: { ...process.env, ...mallocSettings },
    });
    const [server] = (await once(child, "message")) as [HostileServer];
    return new Target(child, server);
  }

  get authorization(): string {
    return `Bearer ${this.#server.token}`;
  }

  /** Resident memory in MiB. */
  async memory(): Promise<number> {
    const status = await readFile(`/proc/${this.#child.pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  }

  async open(): Promise<TLSSocket> {
    const { port, certificate } = this.#server;
    const socket = connect({ host: "127.0.0.1", port, servername: "localhost", ca: certificate });
    socket.on("error", () => {});
    await Promise.race([once(socket, "secureConnect"), once(socket, "close")]).catch(() => {});
    return socket;
  }

  openHttp2(): ClientHttp2Session {
    const { port, certificate } = this.#server;
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: certificate });
    session.on("error", () => {});
    return session;
  }

  async ask(path: string, headers: Readonly<Record<string, string>> = {}): Promise<IncomingMessage> {
    const { port, certificate } = this.#server;
    const options = { host: "127.0.0.1", port, servername: "localhost", ca: certificate, agent: false, path };
    const outgoing = request({ ...options, headers: { authorization: this.authorization, ...headers } });
    outgoing.on("error", () => {});
    outgoing.end();
    const [response] = (await once(outgoing, "response", { signal: AbortSignal.timeout(10_000) })) as [IncomingMessage];
    return response;
  }

  /** Other clients are served, no defect is reported, and memory is within its limit. */
  async isWell(what: string, memoryLimit: number): Promise<void> {
    assert.equal(this.#child.exitCode, null, `the server ended during ${what}`);
    const response = await this.ask("/healthz").catch((error: unknown) => {
      throw new Error(`nobody is served during ${what}`, { cause: error });
    });
    let text = "";
    for await (const chunk of response) text += String(chunk);
    assert.equal(`${response.statusCode} ${text}`, "200 ok", what);
    assert.deepEqual(this.defects, [], what);
    const memory = await this.memory();
    if (process.env["PODWRIGHT_DEBUG"] === "1") console.log(`${memory.toFixed(0)} MiB after ${what}`);
    assert.ok(memory < memoryLimit, `${what}: ${memory.toFixed(0)} MiB of memory, more than ${memoryLimit}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.disconnect();
    await ended;
  }
}

const names = [
  "pods",
  "exec",
  "attach",
  "portForward",
  "containerLogs",
  "run",
  "logs",
  "healthz",
  "debug",
  "checkpoint",
];
const segments: readonly string[] = [
  ...["default", "web", "app", "uid-1", "sparse", "..", ".", "", "%2e%2e", "%2f", "%00", "%zz", "%c0%ae", "flags", "v"],
  ...["a".repeat(300), "\u00e4", "..%2f..%2fetc%2fpasswd", "pprof", "syncloop", "configz", "__proto__", "constructor"],
];
const parameters: readonly string[] = [
  ...["follow=true", "tailLines=1", "tailLines=-1", "tailLines=1e9", "sinceTime=x", "limitBytes=10", "previous=1"],
  ...[
    "command=id",
    "command=",
    "input=1",
    "output=1",
    "tty=1",
    "port=80",
    "port=0,1",
    "cmd=",
    "cmd=a%20b",
    "timeout=x",
  ],
  ...["query=..%2fpasswd", "query=a;b", "pattern=(", "verbose", "exclude=x", "sinceSeconds=9999999999", "%", "&&==&"],
];
const methods: readonly string[] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"];

/** A random request, valid or not. */
function someRequest(dice: Dice, authorization: string): string {
  const path = ["", dice.pick(names), ...Array.from({ length: dice.below(6) }, () => dice.pick(segments))];
  const query = Array.from({ length: dice.below(5) }, () => dice.pick(parameters)).join("&");
  const headers = [
    `Host: x`,
    ...(dice.below(4) === 0 ? [] : [`Authorization: ${authorization}`]),
    ...(dice.below(3) === 0
      ? ["Connection: Upgrade", `Upgrade: ${dice.pick(["websocket", "SPDY/3.1", "h2c", ""])}`]
      : []),
    ...(dice.below(3) === 0 ? ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"] : []),
    ...(dice.below(3) === 0
      ? [`Sec-WebSocket-Protocol: ${dice.pick(["v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io", "x"])}`]
      : []),
    ...(dice.below(6) === 0
      ? [`Accept: ${dice.pick(["*/*;q=", ";;;", "application/json;as=Statusz;v=;g=", ",".repeat(500)])}`]
      : []),
    ...(dice.below(6) === 0 ? [`Content-Length: ${dice.pick(["5", "-1", "99999999999", "x"])}`] : []),
    ...(dice.below(9) === 0 ? ["Transfer-Encoding: chunked"] : []),
    ...(dice.below(9) === 0 ? [`X-${"y".repeat(dice.below(3000))}: ${"z".repeat(dice.below(9000))}`] : []),
  ];
  const target = `${path.join("/")}${query === "" ? "" : `?${query}`}`;
  return `${dice.pick(methods)} ${target} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`;
}

/** Sends, reads for a moment, and disconnects. */
async function sendAndLeave(target: Target, bytes: string | Uint8Array, leaveMs = 40): Promise<string> {
  const socket = await target.open();
  let answer = "";
  socket.on("data", (chunk: Buffer) => {
    if (answer.length < 1000) answer += chunk.toString("latin1");
  });
  socket.write(bytes);
  await Promise.race([once(socket, "close").catch(() => {}), sleep(leaveMs)]);
  socket.destroy();
  return answer;
}

/** Random paths, queries and headers: none may cause a server defect. */
export async function nonsenseRequests(target: Target, dice: Dice, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const text = someRequest(dice, target.authorization);
    const answer = await sendAndLeave(target, dice.below(8) === 0 ? dice.bytes(dice.below(400)) : text);
    assert.doesNotMatch(answer, /^HTTP\/1\.1 500 (?!.*pprof)/, text);
    assert.doesNotMatch(answer, /root:x:0/, text);
  }
}

const upgradePath = "/exec/default/web/app?command=cat&input=1&output=1&error=1";

function upgradeRequest(target: Target, protocol: string, path = upgradePath): string {
  const isSpdy = protocol === "SPDY/3.1";
  const lines = [
    `GET ${path} HTTP/1.1`,
    "Host: x",
    `Authorization: ${target.authorization}`,
    "Connection: Upgrade",
    `Upgrade: ${isSpdy ? "SPDY/3.1" : "websocket"}`,
    ...(isSpdy
      ? ["X-Stream-Protocol-Version: v4.channel.k8s.io"]
      : [
          "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
          "Sec-WebSocket-Version: 13",
          `Sec-WebSocket-Protocol: ${protocol}`,
        ]),
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** A random WebSocket frame, valid or not. */
function someSocketFrame(dice: Dice): Buffer {
  const length = dice.pick([0, 1, 5, 125, 126, 127, 1000]);
  const size = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 0xff];
  const first = dice.below(3) === 0 ? dice.below(256) : 0x82;
  if (dice.below(10) === 0) return Buffer.from([first, 0xff, ...dice.bytes(8), ...dice.bytes(4), ...dice.bytes(100)]);
  const channel = dice.pick([0, 1, 4, 4, 255, 77]);
  return Buffer.from([
    first,
    ...size,
    0,
    0,
    0,
    0,
    ...(length > 0 ? [channel] : []),
    ...dice.bytes(Math.max(0, length - 1)),
  ]);
}

/** A few kilobytes that decompress to 8 MiB. */
const bomb = deflateSync(Buffer.alloc(8 * 1024 * 1024));

/** A random SPDY frame, valid or not; some with headers that decompress to a thousand times their size. */
function someSpdyFrame(dice: Dice): Buffer {
  if (dice.below(5) === 0) return dice.bytes(dice.below(100));
  const type = dice.pick([1, 1, 2, 3, 3, 4, 6, 7, 8, 9, 77]);
  const body = type === 1 ? Buffer.concat([dice.bytes(10), bomb]) : dice.bytes(dice.below(16));
  const head = Buffer.from([0x80, dice.pick([3, 3, 3, 9]), 0, type, dice.below(4), 0, 0, 0]);
  head.writeUIntBE(body.length, 5, 3);
  return Buffer.concat([head, body]);
}

/** WebSocket and SPDY frames, valid and invalid, on granted streams. */
export async function nonsenseFrames(target: Target, dice: Dice, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const protocol = dice.pick(["v5.channel.k8s.io", "v4.channel.k8s.io", "SPDY/3.1+portforward.k8s.io", "SPDY/3.1"]);
    const path = protocol.includes("portforward") ? "/portForward/default/web" : upgradePath;
    const frame = protocol === "SPDY/3.1" ? someSpdyFrame : someSocketFrame;
    const frames = Array.from({ length: 1 + dice.below(20) }, () => frame(dice));
    await sendAndLeave(target, Buffer.concat([Buffer.from(upgradeRequest(target, protocol, path)), ...frames]), 60);
  }
}

/** Headers of a megabyte and more, and thousands of them: rejected, and not kept. */
export async function hugeHeaders(target: Target): Promise<void> {
  const long = `GET /pods HTTP/1.1\r\nHost: x\r\nX-Long: ${"a".repeat(2 * 1024 * 1024)}\r\n\r\n`;
  const many = `GET /pods HTTP/1.1\r\nHost: x\r\n${"X-Y: z\r\n".repeat(200_000)}\r\n`;
  for (const text of [long, many]) {
    assert.match(await sendAndLeave(target, text, 3000), /^HTTP\/1\.1 (?:431|400|401) |^$/);
  }
  const session = target.openHttp2();
  const headers = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`x-${index}`, "v".repeat(1000)]));
  const stream = session.request({ ":path": "/pods", ...headers });
  stream.on("error", () => {});
  await Promise.race([once(stream, "response").catch(() => {}), once(session, "close").catch(() => {}), sleep(3000)]);
  session.destroy();
}

/** Thousands of requests that are reset at once (CVE-2023-44487), and more concurrent ones than allowed. */
export async function resetStorm(target: Target, streams: number): Promise<void> {
  for (const path of ["/pods", "/logs/sparse"]) {
    const session = target.openHttp2();
    const headers = { ":path": path, authorization: target.authorization };
    for (let sent = 0; sent < streams && !session.destroyed && !session.closed; sent++) {
      const stream = session.request(headers);
      stream.on("error", () => {});
      if (sent % 4 !== 3) stream.close(constants.NGHTTP2_CANCEL);
      if (sent % 100 === 99) await sleep(1);
    }
    await sleep(200);
    session.destroy();
  }
}

/** Clients that request more than they read: the server reads its files and its runtime only at their speed. */
export async function slowReaders(target: Target, count: number, memoryLimit: number): Promise<void> {
  const paths = ["/logs/sparse", "/containerLogs/default/web/app", "/containerLogs/default/web/app?follow=true"];
  const sockets: TLSSocket[] = [];
  for (let index = 0; index < count; index++) {
    const socket = await target.open();
    socket.pause();
    const endless = "/exec/default/web/app?command=yes&output=1";
    const text =
      index % 4 === 3
        ? upgradeRequest(target, "SPDY/3.1", endless)
        : `GET ${paths[index % 4]} HTTP/1.1\r\nHost: x\r\nAuthorization: ${target.authorization}\r\n\r\n`;
    // Requested again before the first response was read: the second one waits.
    socket.write(text.repeat(index % 4 === 3 ? 1 : 3));
    sockets.push(socket);
  }
  await sleep(2000);
  await target.isWell(`${count} slow readers`, memoryLimit);
  for (const socket of sockets) socket.destroy();
}

/** Requests whose headers arrive byte by byte, endlessly: they are closed, and block no other client meanwhile. */
export async function slowloris(target: Target, count: number, memoryLimit: number): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: count }, () => target.open()));
  let closed = 0;
  for (const socket of sockets) {
    socket.once("close", () => closed++);
    socket.resume();
    socket.write("GET /pods HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  }
  const limit = Date.now() + 30_000;
  while (closed < count && Date.now() < limit) {
    for (const socket of sockets) if (socket.writable) socket.write("a");
    await target.isWell("slow headers", memoryLimit);
    await sleep(250);
  }
  assert.equal(closed, count, "clients that never finish their headers are sent away");
}

const headerPieceBytes = 120_000;

/** Nearly a megabyte of headers on each of many connections, never finished. */
export async function unfinishedHeaders(target: Target, count: number, memoryLimit: number): Promise<void> {
  const text = `GET /pods HTTP/1.1\r\nHost: x\r\nX-Long: ${randomBytes(480_000).toString("hex")}`;
  const sockets = await Promise.all(Array.from({ length: count }, () => target.open()));
  const what = `unfinished headers on ${count} connections`;
  // All at once would keep this process too busy to check other clients.
  for (let begin = 0; begin < text.length; begin += headerPieceBytes) {
    const piece = text.slice(begin, begin + headerPieceBytes);
    await Promise.all(sockets.map((socket) => new Promise<void>((done) => void socket.write(piece, () => done()))));
    await target.isWell(what, memoryLimit);
  }
  for (let looks = 0; looks < 4; looks++) {
    await sleep(250);
    await target.isWell(what, memoryLimit);
  }
  for (const socket of sockets) socket.destroy();
}

/** Idle connections: others are served as usual. @returns MiB of memory per thousand */
export async function idleConnections(target: Target, count: number, memoryLimit: number): Promise<number> {
  const before = await target.memory();
  const sockets: TLSSocket[] = [];
  while (sockets.length < count) {
    const batch = Math.min(50, count - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: batch }, () => target.open()))));
  }
  await target.isWell(`${count} idle connections`, memoryLimit);
  const after = await target.memory();
  for (const socket of sockets) socket.destroy();
  return ((after - before) / count) * 1000;
}
