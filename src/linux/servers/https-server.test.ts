import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect as connectHttp2, type IncomingHttpHeaders, type Settings } from "node:http2";
import { Agent, createServer as createTlsServer, request as httpsRequest, type RequestOptions } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { describe, test } from "node:test";
import { text as textOf } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { CertificateAuthority as Authority } from "../../../test/apiserver/certificates.ts";
import type { NodeHandler, NodeRequest } from "../../ports/node-server.ts";
import { CertificateAuthority, type Credentials, selfSignedCertificate } from "../certificates/certificates.ts";
import { type HttpsServer, serveHttps, type TlsMaterial } from "./https-server.ts";
import { testDirectory } from "../processes/testing.ts";

const now = new Date();
const serving = selfSignedCertificate(["localhost", "127.0.0.1"], now);
const authority = new CertificateAuthority("clients", now);
const validity = { notBefore: new Date(now.getTime() - 60_000), notAfter: new Date(now.getTime() + 3600_000) };
const client = authority.issue({
  subject: { commonName: "jane", organizations: ["dev", "ops"] },
  usages: ["client"],
  ...validity,
});
const material: TlsMaterial = { ...serving, clientAuthorities: authority.certificate };

async function start(handler: NodeHandler, tls = material): Promise<HttpsServer> {
  return await serveHttps(handler, tls, {
    host: "127.0.0.1",
    port: 0,
    minVersion: "TLSv1.2",
    ciphers: undefined,
    streamingIdleMs: 60_000,
    maxBodyBytes: 1000,
  });
}

const whoAmI: NodeHandler = async ({ method, path, certificate }) => {
  const who = certificate && { commonName: certificate.commonName, organizations: certificate.organizations };
  return { status: 200, contentType: "text/plain", body: `${method} ${path} ${JSON.stringify(who ?? null)}` };
};

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(server: HttpsServer, options: RequestOptions & { readonly body?: string }): Promise<Answer> {
  const port = Number(server.address.split(":").at(-1));
  const outgoing = httpsRequest({ host: "127.0.0.1", port, ca: serving.certificate, agent: false, ...options });
  outgoing.end(options.body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return { status: response.statusCode ?? 0, text };
}

/** Requests an upgrade and returns the connection, or the refusal. */
async function askForUpgrade(
  server: HttpsServer,
  path: string,
  protocol: Readonly<Record<string, string>> = {
    Upgrade: "SPDY/3.1",
    "X-Stream-Protocol-Version": "v4.channel.k8s.io",
  },
): Promise<Duplex | Answer> {
  const port = Number(server.address.split(":").at(-1));
  const headers = { Connection: "Upgrade", ...protocol };
  const outgoing = httpsRequest({ host: "127.0.0.1", port, ca: serving.certificate, agent: false, path, headers });
  outgoing.end();
  const { promise, resolve, reject } = Promise.withResolvers<Duplex | Answer>();
  outgoing.once("upgrade", (response, socket) => {
    assert.equal(response.headers["x-answer"], "yes");
    resolve(socket);
  });
  outgoing.once("response", (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
  });
  outgoing.once("error", reject);
  return await promise;
}

describe("the HTTPS server", () => {
  test("identifies a client only by its certificate, over HTTP/1.1 and HTTP/2", async () => {
    await using server = await start(whoAmI);
    assert.deepEqual(await ask(server, { path: "/pods" }), { status: 200, text: "GET /pods null" });
    // A request as to a proxy.
    assert.equal((await ask(server, { path: "https://elsewhere:1/pods?x=/y" })).text, "GET /pods null");
    assert.equal((await ask(server, { path: "http://elsewhere" })).text, "GET / null");
    const jane = '{"commonName":"jane","organizations":["dev","ops"]}';
    const known = { path: "/pods", cert: client.certificate, key: client.key };
    assert.equal((await ask(server, known)).text, `GET /pods ${jane}`);
    const url = `https://${server.address}`;
    const session = connectHttp2(url, { ca: serving.certificate, cert: client.certificate, key: client.key });
    const stream = session.request({ ":path": "/healthz" });
    let text = "";
    for await (const chunk of stream.setEncoding("utf8")) text += String(chunk);
    session.close();
    assert.equal(text, `GET /healthz ${jane}`);
  });

  test("accepts no certificate from another authority, nor any without an authority", async () => {
    const stranger = new CertificateAuthority("strangers", now).issue({
      subject: { commonName: "jane" },
      usages: ["client"],
      ...validity,
    });
    const serverOnly = authority.issue({ subject: { commonName: "jane" }, usages: ["server"], ...validity });
    const late = authority.issue({
      subject: { commonName: "jane" },
      usages: ["client"],
      notBefore: new Date(now.getTime() - 7200_000),
      notAfter: new Date(now.getTime() - 3600_000),
    });
    await using server = await start(whoAmI);
    for (const { certificate: cert, key } of [stranger, serverOnly, late]) {
      assert.equal((await ask(server, { path: "/", cert, key })).text, "GET / null");
    }
    await using open = await start(whoAmI, { ...material, clientAuthorities: undefined });
    const known = { path: "/", cert: client.certificate, key: client.key };
    assert.equal((await ask(open, known)).text, "GET / null");
  });

  test("trusts an intermediate authority without its root, as Go does, also when it came later", async () => {
    const between = new Authority("cluster", new Authority("company"));
    const { certificate: cert, key } = between.issue({ subject: { commonName: "jane" }, usages: ["client"] });
    const only = { ...serving, clientAuthorities: between.certificate };
    await using server = await start(whoAmI, only);
    const told = async (): Promise<string> => (await ask(server, { path: "/", cert, key })).text;
    assert.equal(await told(), 'GET / {"commonName":"jane","organizations":[]}');
    server.useTls(material);
    assert.equal(await told(), "GET / null");
    server.useTls(only);
    assert.equal(await told(), 'GET / {"commonName":"jane","organizations":[]}');
  });

  test("does not identify existing connections whose authority was removed or whose certificate has expired", async (t) => {
    await using server = await start(whoAmI);
    const others = new CertificateAuthority("others", now);
    const jane = 'GET / {"commonName":"jane","organizations":["dev","ops"]}';
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => kept.destroy());
    const known = { path: "/", cert: client.certificate, key: client.key, agent: kept };
    const url = `https://${server.address}`;
    const session = connectHttp2(url, { ca: serving.certificate, cert: client.certificate, key: client.key });
    t.after(() => session.destroy());
    const both = async (): Promise<string[]> => {
      let text = "";
      for await (const chunk of session.request({ ":path": "/" }).setEncoding("utf8")) text += String(chunk);
      return [(await ask(server, known)).text, text];
    };
    assert.deepEqual(await both(), [jane, jane]);
    server.useTls({ ...serving, clientAuthorities: `${others.certificate}\n${authority.certificate}` });
    assert.deepEqual(await both(), [jane, jane], "an authority that came does not take the other away");
    server.useTls({ ...serving, clientAuthorities: others.certificate });
    assert.deepEqual(await both(), ["GET / null", "GET / null"]);
    server.useTls(material);
    assert.deepEqual(await both(), [jane, jane]);
    t.mock.method(Date, "now", () => validity.notAfter.getTime() + 1);
    assert.deepEqual(await both(), ["GET / null", "GET / null"]);
  });

  test("serves a replaced certificate from the next connection on", async () => {
    await using server = await start(whoAmI);
    const next = selfSignedCertificate(["localhost", "127.0.0.1"], now);
    await ask(server, { path: "/" });
    server.useTls({ ...next, clientAuthorities: undefined });
    await assert.rejects(ask(server, { path: "/" }), /certificate|signature/i);
    assert.equal((await ask(server, { path: "/", ca: next.certificate })).status, 200);
    assert.throws(() => server.useTls({ certificate: "none", key: "none", clientAuthorities: undefined }));
    assert.equal((await ask(server, { path: "/", ca: next.certificate })).status, 200, "the good one stays");
  });

  test("announces its header limit for HTTP/2, accepts many headers, and rejects a single request above the limit", async (t) => {
    await using server = await start(whoAmI);
    const session = connectHttp2(`https://${server.address}`, { ca: serving.certificate });
    t.after(() => session.destroy());
    const [{ maxHeaderListSize }] = (await once(session, "remoteSettings")) as [Settings];
    assert.equal(maxHeaderListSize, 65_536);
    const lines = (count: number, value: string): Record<string, string> => {
      return Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, value]));
    };
    const status = async (headers: Record<string, string>): Promise<unknown> => {
      const stream = session.request({ ":path": "/", ...headers });
      stream.resume();
      const [answer] = (await once(stream, "response")) as [IncomingHttpHeaders];
      return answer[":status"];
    };
    assert.equal(await status(lines(1000, "v")), 200);
    assert.equal(await status({ "x-long": "v".repeat(60_000) }), 200);
    await assert.rejects(status(lines(3, "v".repeat(30_000))), /Stream closed/);
    assert.equal(await status({}), 200, "the connection goes on");
  });

  test("pings silent clients, because one that follows a log may never send again", async (t) => {
    await using server = await start(whoAmI);
    const port = Number(server.address.split(":").at(-1));
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    await ask(server, { path: "/", agent });
    const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    // The state of the socket's timer; 02 is keep-alive, once all sent data has been acknowledged.
    const timers = async (): Promise<string> => {
      const lines = (await readFile("/proc/net/tcp", "utf8")).split("\n").map((line) => line.trim().split(/\s+/));
      return lines.map((fields) => (fields[1] === local && fields[3] === "01" ? fields[5]?.slice(0, 2) : "")).join("");
    };
    for (let look = 0; look < 100 && (await timers()) !== "02"; look++) await setTimeout(50);
    assert.equal(await timers(), "02");
  });

  test("rejects oversized bodies and responds to handler errors", async () => {
    await using server = await start(async (request) => {
      const body = await request.body();
      if (body === "throw") throw new Error("a defect");
      return { status: 200, contentType: "text/plain", body };
    });
    assert.equal((await ask(server, { method: "POST", body: "x".repeat(1000) })).status, 200);
    assert.deepEqual(await ask(server, { method: "POST", body: "throw" }), { status: 500, text: "a defect\n" });
    const tooLong = { status: 413, text: "the request's body is longer than 1000 bytes\n" };
    assert.deepEqual(await ask(server, { method: "POST", body: "x".repeat(1001) }), tooLong);
    const chunked = { method: "POST", headers: { "Transfer-Encoding": "chunked" }, body: "x".repeat(1001) };
    assert.deepEqual(await ask(server, chunked), tooLong);
  });

  test("survives clients that speak no TLS or disconnect midway", async () => {
    await using server = await start(whoAmI);
    const port = Number(server.address.split(":").at(-1));
    for (const text of ["GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", ""]) {
      const socket = connect({ host: "127.0.0.1", port });
      await once(socket, "connect");
      socket.end(text);
      socket.on("error", () => {});
      socket.resume();
      await once(socket, "close");
    }
    assert.equal((await ask(server, { path: "/" })).status, 200);
  });
});

/** A streaming server like a runtime's. */
async function streamingServer(answer: (socket: Socket, request: IncomingMessage) => void, tls?: Credentials) {
  const missing = (_request: IncomingMessage, response: ServerResponse) => response.writeHead(404).end("no such exec");
  const server =
    tls === undefined ? createServer(missing) : createTlsServer({ cert: tls.certificate, key: tls.key }, missing);
  server.on("upgrade", (request, socket) => answer(socket as Socket, request));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const scheme = tls === undefined ? "http" : "https";
  return { url: `${scheme}://127.0.0.1:${port}/exec/token`, [Symbol.dispose]: () => void server.close() };
}

const agree = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Answer: yes\r\n\r\n";

describe("an upgrade", () => {
  const forwardTo = (url: string): NodeHandler => {
    return async (request: NodeRequest) => {
      assert.equal(request.upgrade, true);
      return { forwardTo: url };
    };
  };

  test("is forwarded with its headers, and bytes pass both ways, each to its own end", async () => {
    const seen: IncomingMessage[] = [];
    using runtime = await streamingServer((socket, request) => {
      seen.push(request);
      socket.write(agree);
      socket.on("data", (chunk) => socket.write(chunk));
      socket.on("end", () => socket.end("bye"));
    });
    await using server = await start(forwardTo(runtime.url));
    const stream = await askForUpgrade(server, "/exec/a/b/c?command=x");
    assert.ok(!("status" in stream));
    const size = 3_000_000;
    stream.end(Buffer.alloc(size, 7));
    let received = 0;
    let tail = "";
    for await (const chunk of stream) {
      const bytes = chunk as Buffer;
      received += bytes.length;
      tail = bytes.toString("latin1").slice(-3);
    }
    assert.deepEqual([received, tail], [size + 3, "bye"]);
    assert.equal(seen[0]?.url, "/exec/token");
    assert.equal(seen[0]?.headers["x-stream-protocol-version"], "v4.channel.k8s.io");
  });

  test("gets the refusal of the other server, and never its redirect", async () => {
    using refusing = await streamingServer((socket) => {
      socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\nno such exec");
    });
    await using first = await start(forwardTo(refusing.url));
    assert.deepEqual(await askForUpgrade(first, "/exec"), { status: 404, text: "no such exec" });
    using redirecting = await streamingServer((socket) => {
      socket.end("HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n");
    });
    await using second = await start(forwardTo(redirecting.url));
    const answer = await askForUpgrade(second, "/exec");
    assert.ok("status" in answer);
    assert.equal(answer.status, 502);
  });

  test("is forwarded over TLS to a server that the machine trusts, and to no other", async () => {
    using directory = testDirectory();
    const root = new CertificateAuthority("runtimes", now);
    writeFileSync(directory.join("ca.pem"), root.certificate);
    // Replaces the machine's trusted certificates.
    process.env["SSL_CERT_FILE"] = directory.join("ca.pem");
    const names = ["localhost", "127.0.0.1"];
    const issued = root.issue({ subject: { commonName: "streams" }, names, usages: ["server"], ...validity });
    const echo = (socket: Socket): void => {
      socket.write(agree);
      socket.on("data", (chunk) => socket.write(chunk));
      socket.on("end", () => socket.end("bye"));
    };
    using trusted = await streamingServer(echo, issued);
    await using first = await start(forwardTo(trusted.url));
    const stream = await askForUpgrade(first, "/exec/a/b/c");
    assert.ok(!("status" in stream), JSON.stringify(stream));
    stream.end("hello, ");
    assert.equal(await textOf(stream), "hello, bye");
    using stranger = await streamingServer(echo, serving);
    await using second = await start(forwardTo(stranger.url));
    const refused = await askForUpgrade(second, "/exec/a/b/c");
    assert.ok("status" in refused && refused.status === 502);
    assert.match(
      refused.text,
      /certificate that this machine does not trust \(self-signed certificate[^]*stream_enable_tls/u,
    );
  });

  test("to an unreachable server gets 502, and one that a handler rejects gets its response", async () => {
    await using server = await start(async ({ path }) => {
      if (path === "/dead") return { forwardTo: "http://127.0.0.1:1/exec" };
      return { status: 403, contentType: "text/plain", body: "Forbidden" };
    });
    const dead = await askForUpgrade(server, "/dead");
    assert.ok("status" in dead && dead.status === 502);
    assert.deepEqual(await askForUpgrade(server, "/exec"), { status: 403, text: "Forbidden" });
  });

  test("with another response from the handler gets all of it, however long", async () => {
    await using server = await start(async () => ({
      status: 200,
      contentType: "text/plain",
      body: (async function* () {
        for (let piece = 0; piece < 100; piece++) yield "x".repeat(10_000);
      })(),
    }));
    assert.deepEqual(await askForUpgrade(server, "/containerLogs/a/b/c"), { status: 200, text: "x".repeat(1_000_000) });
  });

  test("to WebSocket with an invalid handshake is rejected before the runtime is called", async () => {
    await using server = await start(async () => {
      const streams = { stdin: false, stdout: true, stderr: false, tty: false };
      return { forwardTo: "http://127.0.0.1:1/exec", streams };
    });
    const key = "dGhlIHNhbXBsZSBub25jZQ==";
    for (const [version, own, status] of [
      ["8", key, 400],
      ["13", "x", 400],
      ["13", "", 400],
      ["13", key, 502],
    ] as const) {
      const answer = await askForUpgrade(server, "/exec/a/b/c", {
        Upgrade: "websocket",
        "Sec-WebSocket-Version": version,
        "Sec-WebSocket-Key": own,
        "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
      });
      assert.equal("status" in answer && answer.status, status, `${version} ${own}`);
    }
  });

  test("to WebSocket may carry its token among the protocols, which is then removed", async () => {
    await using server = await start(async ({ headers }) => {
      const body = `${headers["authorization"]}, ${headers["sec-websocket-protocol"]}`;
      return { status: 403, contentType: "text/plain", body };
    });
    const token = `base64url.bearer.authorization.k8s.io.${Buffer.from("secret").toString("base64url")}`;
    const answer = await askForUpgrade(server, "/exec/a/b/c", {
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      "Sec-WebSocket-Protocol": `${token}, v4.channel.k8s.io`,
    });
    assert.deepEqual(answer, { status: 403, text: "Bearer secret, v4.channel.k8s.io" });
  });

  test("that was not requested cannot be forwarded", async () => {
    await using server = await start(async () => ({ forwardTo: "http://127.0.0.1:1/exec" }));
    assert.equal((await ask(server, { path: "/exec" })).status, 400);
  });
});
