import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type SecureServerOptions,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { CertificateAuthority } from "../../test/apiserver/certificates.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { until } from "../../test/support/podwright.ts";
import { listening } from "../../test/support/listening.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { KubeConnectionError, type KubeLane, type KubeResponse, type KubeTransport } from "../ports/kube-api.ts";
import type { CertificateSource } from "./credentials.ts";
import type { Liveness } from "./http2.ts";
import type { KubeAccess } from "./kubeconfig.ts";
import { openKubeTransport } from "./transport.ts";

const authority = new CertificateAuthority("test-ca");
const serving = authority.issue({ subject: { commonName: "api" }, names: ["127.0.0.1"], usages: ["server"] });
const node = authority.issue({ subject: { commonName: "system:node:n" }, usages: ["client"] });
const tls = { cert: serving.certificate, key: serving.key };

const opened: (() => void)[] = [];
after(() => {
  for (const close of opened) close();
});

const listen = (server: Server): Promise<number> => listening(server, opened);

/** Responds with the client and its connection; `/wait` never ends. */
const tell: RequestListener = (request, response) => {
  if (request.url === "/wait") {
    response.writeHead(200).write("first\n");
    return;
  }
  const socket = (request as unknown as { readonly stream?: { readonly session: { readonly socket: TLSSocket } } })
    .stream?.session.socket;
  const secure = socket ?? (request.socket as TLSSocket);
  const subject = secure.getPeerCertificate?.().subject?.CN ?? "nobody";
  const { authorization = "no token" } = request.headers;
  response.end(JSON.stringify([request.httpVersion, subject, authorization, request.socket.remotePort, request.url]));
};

async function http2Server(options: SecureServerOptions = {}): Promise<{ server: Http2SecureServer; port: number }> {
  const server = createSecureServer({
    ...tls,
    ca: authority.certificate,
    requestCert: true,
    rejectUnauthorized: false,
    ...options,
  });
  server.on("request", tell as unknown as Parameters<Http2SecureServer["on"]>[1]);
  return { server, port: await listen(server) };
}

function transportTo(
  server: string,
  changed: Partial<KubeAccess> = {},
  liveness?: Liveness,
  clientCertificate?: CertificateSource,
): KubeTransport & Disposable {
  const ca = { kind: "inline", text: authority.certificate } as const;
  const access: KubeAccess = { server, ca, serverName: undefined, insecure: false, user: {}, ...changed };
  const world = { clock: systemClock, files: systemFiles, processes: systemProcesses, userAgent: "test" };
  const deps = { ...world, ...(clientCertificate && { clientCertificate }) };
  const transport = openKubeTransport(access, deps, liveness);
  opened.push(() => transport[Symbol.dispose]());
  return transport;
}

function send(
  transport: KubeTransport,
  path = "/",
  lane: KubeLane = "objects",
  signal = new AbortController().signal,
): Promise<KubeResponse> {
  return transport.send({ lane, method: "GET", path, headers: {}, signal });
}

async function text(response: KubeResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function ask(...parameters: Parameters<typeof send>): Promise<readonly [string, string, string, number, string]> {
  return JSON.parse(await text(await send(...parameters)));
}

describe("the transport", () => {
  test("speaks HTTP/2 with a client certificate, one connection a lane", async () => {
    const { port } = await http2Server();
    const inline = (pem: string) => ({ kind: "inline", text: pem }) as const;
    const certificate = { cert: inline(node.certificate), key: inline(node.key) };
    const transport = transportTo(`https://127.0.0.1:${port}/base`, { user: { certificate } });
    const [version, subject, , first, path] = await ask(transport, "/a?b=c");
    assert.deepEqual([version, subject, path], ["2.0", "system:node:n", "/base/a?b=c"]);
    const [again, other] = [await ask(transport), await ask(transport, "/", "heartbeats")];
    assert.equal(again[3], first);
    assert.notEqual(other[3], first);
  });

  test("a renewed certificate counts from the next request on, and no other credential beside it", async () => {
    const clients = { ca: authority.certificate, requestCert: true, rejectUnauthorized: false };
    for (const version of ["2.0", "1.1"]) {
      const port =
        version === "2.0" ? (await http2Server()).port : await listen(createHttpsServer({ ...tls, ...clients }, tell));
      const next = authority.issue({ subject: { commonName: "system:node:next" }, usages: ["client"] });
      let current: typeof node | undefined = node;
      const user = { token: { kind: "inline", text: "s3cret" } } as const;
      const transport = transportTo(`https://127.0.0.1:${port}`, { user }, undefined, async () => {
        if (current === undefined) throw new KubeConnectionError("none yet");
        return { cert: current.certificate, key: current.key };
      });
      const [spoken, subject, sent, first] = await ask(transport);
      assert.deepEqual([spoken, subject, sent], [version, "system:node:n", "no token"]);
      const over = new AbortController();
      const watch = (await send(transport, "/wait", "objects", over.signal)).body[Symbol.asyncIterator]();
      assert.equal(Buffer.from((await watch.next()).value ?? "").toString(), "first\n");
      current = next;
      const [, renewed, , second] = await ask(transport);
      assert.equal(renewed, "system:node:next");
      assert.notEqual(second, first);
      const end = watch.next();
      const still = await Promise.race([end, new Promise((done) => setTimeout(() => done("still open"), 100))]);
      assert.equal(still, "still open", "a watch under way goes on");
      over.abort(new Error("over"));
      await assert.rejects(end, /^Error: over$/);
      current = undefined;
      await assert.rejects(ask(transport), /^KubeConnectionError: none yet$/);
    }
  });

  test("rereads a token's file when the server rejects the token", async () => {
    const directory = await mkdtemp(join(tmpdir(), "podwright-kube-"));
    opened.push(() => void rm(directory, { recursive: true }));
    const path = join(directory, "token");
    await writeFile(path, "old\n");
    const server = createHttpServer((request, response) => {
      response.writeHead(request.headers.authorization === "Bearer new" ? 200 : 401).end();
    });
    const transport = transportTo(`http://127.0.0.1:${await listen(server)}`, {
      user: { token: { kind: "file", path } },
    });
    await writeFile(path, "old\n");
    assert.equal((await send(transport)).status, 401);
    await writeFile(path, "new\n");
    assert.equal((await send(transport)).status, 200);
  });

  test("rereads files within a second after a 401, or a failed connection", async () => {
    const directory = await mkdtemp(join(tmpdir(), "podwright-kube-"));
    opened.push(() => void rm(directory, { recursive: true }));
    const [token, ca] = [join(directory, "token"), join(directory, "ca")];
    await Promise.all([writeFile(token, "old"), writeFile(ca, authority.certificate)]);
    const other = new CertificateAuthority("other");
    const theirs = other.issue({ subject: { commonName: "api" }, names: ["127.0.0.1"], usages: ["server"] });
    const server = createHttpsServer({ cert: theirs.certificate, key: theirs.key }, (request, response) => {
      response.writeHead(request.headers.authorization === "Bearer new" ? 200 : 403).end();
    });
    const clock = new ManualClock();
    const access: KubeAccess = {
      server: `https://127.0.0.1:${await listen(server)}`,
      ca: { kind: "file", path: ca },
      serverName: undefined,
      insecure: false,
      user: { token: { kind: "file", path: token } },
    };
    const deps = { clock, files: systemFiles, processes: systemProcesses, userAgent: "test" };
    const transport = openKubeTransport(access, deps);
    opened.push(() => transport[Symbol.dispose]());
    await assert.rejects(send(transport), /did not sign its certificate/);
    await writeFile(ca, other.certificate);
    await clock.advance(1000);
    assert.equal((await send(transport)).status, 403);
    await writeFile(token, "new");
    await clock.advance(1000);
    assert.equal((await send(transport)).status, 200);
  });

  test("falls back to HTTP/1.1 where the server speaks nothing else", async () => {
    const server = createHttpsServer(tls, tell);
    const transport = transportTo(`https://127.0.0.1:${await listen(server)}`);
    const [version, , , port] = await ask(transport);
    assert.equal(version, "1.1");
    assert.equal((await ask(transport))[3], port, "the connection is kept");
  });

  test("opens another connection when one is full of watches", async () => {
    const { port } = await http2Server({ settings: { maxConcurrentStreams: 2 } });
    const transport = transportTo(`https://127.0.0.1:${port}`);
    const [, , , first] = await ask(transport);
    const watches = [await send(transport, "/wait"), await send(transport, "/wait")];
    const [, , , second] = await ask(transport);
    assert.notEqual(second, first);
    assert.deepEqual(
      watches.map(({ status }) => status),
      [200, 200],
    );
  });

  test("a server that keeps no table of headers is understood", async () => {
    for (const headerTableSize of [0, 1024]) {
      const { port } = await http2Server({ settings: { headerTableSize } });
      const transport = transportTo(`https://127.0.0.1:${port}`);
      const answers = await Promise.all(Array.from({ length: 5 }, () => ask(transport)));
      assert.equal(answers.length, 5);
      await ask(transport);
    }
  });

  test("the body of a response ends with its request's signal, also when all of it has come", async () => {
    const server = createSecureServer(tls);
    server.on("stream", (stream: ServerHttp2Stream) => {
      stream.respond({ ":status": 200 });
      stream.end("x".repeat(100_000));
    });
    const transport = transportTo(`https://127.0.0.1:${await listen(server)}`);
    const controller = new AbortController();
    const { signal } = controller;
    const { body } = await transport.send({ lane: "objects", method: "GET", path: "/", headers: {}, signal });
    await systemClock.sleep("the whole response", 200);
    controller.abort(new Error("enough"));
    await assert.rejects(async () => {
      for await (const piece of body) assert.ok(piece.length > 0);
    }, /enough/);
  });

  test("a burst respects the server's limit of concurrent requests", async () => {
    const { port } = await http2Server({ settings: { maxConcurrentStreams: 1 } });
    const transport = transportTo(`https://127.0.0.1:${port}`);
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(transport)));
    assert.equal(answers.length, 20);
    const none = await http2Server({ settings: { maxConcurrentStreams: 0 } });
    await assert.rejects(ask(transportTo(`https://127.0.0.1:${none.port}`)), /accepts no requests on a new connection/);
  });

  test("a request that the server refused unprocessed is repeated, a few times", async () => {
    const server = createSecureServer(tls);
    let refusals = 0;
    let times = 2;
    server.on("stream", (stream: ServerHttp2Stream) => {
      stream.on("error", () => {});
      if (refusals++ < times) stream.close(constants.NGHTTP2_REFUSED_STREAM);
      else stream.respond({ ":status": 201 }, { endStream: true });
    });
    const transport = transportTo(`https://127.0.0.1:${await listen(server)}`);
    const signal = new AbortController().signal;
    const create = (): Promise<KubeResponse> =>
      transport.send({ lane: "objects", method: "POST", path: "/", headers: {}, body: "{}", signal });
    assert.deepEqual([(await create()).status, refusals], [201, 3]);
    [refusals, times] = [0, Number.POSITIVE_INFINITY];
    await assert.rejects(create(), /^KubeConnectionError: .*REFUSED_STREAM/);
    assert.equal(refusals, 5);
  });

  test("reports the problem of the server's certificate", async () => {
    const { port } = await http2Server({ ca: undefined, requestCert: false });
    const stranger = { kind: "inline", text: new CertificateAuthority("other").certificate } as const;
    await assert.rejects(send(transportTo(`https://127.0.0.1:${port}`, { ca: stranger })), {
      name: "KubeConnectionError",
      message:
        `API server 127.0.0.1:${port}: the kubeconfig's certificate authority did not sign its certificate: ` +
        "check certificate-authority or certificate-authority-data of its cluster (unable to get local issuer certificate)",
    });
    const system = transportTo(`https://127.0.0.1:${port}`, { ca: undefined });
    await assert.rejects(send(system), /signed by an unknown authority: set certificate-authority or/);
    const path = { kind: "inline", text: "/etc/kubernetes/pki/ca.crt" } as const;
    await assert.rejects(
      send(transportTo(`https://127.0.0.1:${port}`, { ca: path })),
      /is not a PEM certificate: check/,
    );
    const name = { serverName: "elsewhere.example" };
    await assert.rejects(
      send(transportTo(`https://127.0.0.1:${port}`, name)),
      /its certificate is for another name: set .* tls-server-name/,
    );
    const old = authority.issue({
      subject: { commonName: "api" },
      names: ["127.0.0.1"],
      usages: ["server"],
      notAfter: new Date(Date.now() - 1000),
    });
    const expired = await http2Server({ cert: old.certificate, key: old.key });
    await assert.rejects(send(transportTo(`https://127.0.0.1:${expired.port}`)), /expired, or this machine's clock/);
    const insecure = transportTo(`https://127.0.0.1:${expired.port}`, { ca: undefined, insecure: true });
    assert.equal((await ask(insecure))[0], "2.0");
  });

  test("trusts an intermediate authority without its root, as Go does", async () => {
    const between = new CertificateAuthority("cluster", authority);
    const own = between.issue({ subject: { commonName: "api" }, names: ["127.0.0.1"], usages: ["server"] });
    const { port } = await http2Server({ cert: own.certificate, key: own.key });
    const ca = { kind: "inline", text: between.certificate } as const;
    assert.equal((await ask(transportTo(`https://127.0.0.1:${port}`, { ca })))[0], "2.0");
  });

  test("a missing server is an error at once, and found when it starts", async () => {
    const placeholder = createServer();
    const port = await listen(placeholder);
    await new Promise((closed) => placeholder.close(closed));
    const transport = transportTo(`https://127.0.0.1:${port}`);
    await assert.rejects(send(transport), /^KubeConnectionError: API server .*ECONNREFUSED/);
    const server = createHttpsServer(tls, tell);
    opened.push(() => server.close().closeAllConnections());
    await new Promise<void>((done) => void server.listen(port, "127.0.0.1", done));
    assert.equal((await ask(transport))[0], "1.1");
  });

  test("nothing stays open after disposal, including connections in progress", async () => {
    // Never completes a handshake.
    const silent = createServer();
    const met = new Promise<Socket>((resolve) => void silent.once("connection", resolve));
    const connecting = transportTo(`https://127.0.0.1:${await listen(silent)}`);
    const refused = assert.rejects(send(connecting), /the connections to the API server are closed/);
    const gone = once((await met).on("error", () => {}).resume(), "close");
    connecting[Symbol.dispose]();
    await Promise.all([refused, gone]);
    await assert.rejects(send(connecting), /are closed/);

    // A connection whose certificate was renewed stays open until its watches end.
    const { server, port } = await http2Server();
    let current = node;
    const certificate = async () => ({ cert: current.certificate, key: current.key });
    const transport = transportTo(`https://127.0.0.1:${port}`, {}, undefined, certificate);
    const sessions: Promise<unknown>[] = [];
    server.on("session", (session) => sessions.push(once(session, "close")));
    const watch = text(await send(transport, "/wait"));
    current = authority.issue({ subject: { commonName: "system:node:next" }, usages: ["client"] });
    await ask(transport);
    assert.equal(sessions.length, 2);
    transport[Symbol.dispose]();
    await Promise.all([...sessions, assert.rejects(watch, KubeConnectionError)]);
  });
});

describe("a connection that is half dead", () => {
  /** Passes bytes on until it is set to swallow them. */
  async function swallower(target: number): Promise<{ readonly port: number; readonly swallow: () => void }> {
    let swallows = false;
    const proxy = createServer((client) => {
      const onward = connect(target, "127.0.0.1");
      const deaf = swallows;
      client.on("data", (data) => void ((deaf || !swallows) && onward.write(data)));
      onward.on("data", (data) => void ((deaf || !swallows) && client.write(data)));
      for (const [a, b] of [
        [client, onward],
        [onward, client],
      ] as const) {
        a.on("error", () => b.destroy());
        a.on("close", () => b.destroy());
      }
    });
    return { port: await listen(proxy), swallow: () => (swallows = true) };
  }

  test("is dropped when it is silent, and its watches end", async () => {
    const { port } = await http2Server();
    const proxy = await swallower(port);
    const transport = transportTo(`https://127.0.0.1:${proxy.port}`, {}, { quietMs: 50, answerMs: 50 });
    const watch = await send(transport, "/wait");
    let error: unknown;
    const ended = text(watch).catch((reason: unknown) => (error = reason));
    // It lives while the pings are answered.
    await new Promise((done) => setTimeout(done, 300));
    assert.equal(error, undefined);
    proxy.swallow();
    await ended;
    assert.match(String(error), /no data received for 0\.05 s|the connection was lost|reset/);
    // A new connection is made, and works.
    await until("a new connection", async () => (await ask(transport))[0] === "2.0");
  });

  test("over HTTP/1.1 a canceled request closes its connection", async () => {
    const server = createHttpServer(tell);
    const transport = transportTo(`http://127.0.0.1:${await listen(server)}`);
    const [, , , first] = await ask(transport);
    const controller = new AbortController();
    const watch = await send(transport, "/wait", "objects", controller.signal);
    setTimeout(() => controller.abort(new Error("too late")), 20);
    await assert.rejects(text(watch), /too late/);
    assert.notEqual((await ask(transport))[3], first);
  });
});
