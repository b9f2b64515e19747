import assert from "node:assert/strict";
import { createServer as createHttpServer, type RequestListener, type Server as HttpServer } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { connect, type Server, type Socket } from "node:net";
import { after, describe, test } from "node:test";
import { CertificateAuthority } from "../../test/apiserver/certificates.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { listening } from "../../test/support/listening.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import type { KubeResponse, KubeTransport } from "../ports/kube-api.ts";
import { connectionsThrough } from "./endpoint.ts";
import { defaultLiveness, type Liveness } from "./http2.ts";
import type { KubeAccess } from "./kubeconfig.ts";
import { openKubeTransport, type TransportDependencies } from "./transport.ts";

const authority = new CertificateAuthority("test-ca");
const names = ["127.0.0.1", "api.test"];
const serving = authority.issue({ subject: { commonName: "api" }, names, usages: ["server"] });
const tls = { cert: serving.certificate, key: serving.key };
const basic = `Basic ${Buffer.from("me:s3cret").toString("base64")}`;

const opened: (() => void)[] = [];
after(() => {
  for (const close of opened) close();
});

const listen = (server: Server): Promise<number> => listening(server, opened);

/** Responds with the request's version, path and headers; `/wait` never ends. */
const tell: RequestListener = (request, response) => {
  if (request.url === "/wait") return void response.writeHead(200).write("first\n");
  response.end(JSON.stringify([request.httpVersion, request.url, request.headers["proxy-authorization"] ?? "nothing"]));
};

async function http2Server(): Promise<number> {
  const server = createSecureServer(tls);
  server.on("request", tell as unknown as Parameters<Http2SecureServer["on"]>[1]);
  return await listen(server);
}

interface Proxy {
  readonly port: number;
  /** Who was to be connected to, and with which credentials. */
  readonly asked: (readonly [target: string | undefined, credentials: string | undefined])[];
  /** Ends of connections to those behind it. */
  readonly ends: Set<Socket>;
}

/** Connects to the port of this machine whatever the host; to none without the credentials, if it knows any. */
async function connectProxy(server: HttpServer = createHttpServer(), known?: string): Promise<Proxy> {
  const asked: (readonly [string | undefined, string | undefined])[] = [];
  const ends = new Set<Socket>();
  server.on("connect", ({ url, headers }, client: Socket) => {
    const { host, "proxy-authorization": credentials } = headers;
    assert.equal(host, url);
    asked.push([url, credentials]);
    if (known !== undefined && known !== credentials) {
      client.end("HTTP/1.1 407 s3cret words\r\nproxy-authenticate: Basic\r\n\r\n");
      return;
    }
    const onward = connect(Number(/\d+$/u.exec(url ?? "")?.[0]), "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      client.pipe(onward).pipe(client);
    });
    ends.add(onward.on("close", () => ends.delete(onward)).on("error", () => client.destroy()));
    client.on("error", () => onward.destroy()).on("close", () => onward.destroy());
  });
  return { port: await listen(server), asked, ends };
}

function transportTo(
  server: string,
  changed: Partial<KubeAccess>,
  environment?: TransportDependencies["environment"],
  liveness: Liveness = defaultLiveness,
): KubeTransport & Disposable {
  const ca = { kind: "inline", text: authority.certificate } as const;
  const access: KubeAccess = { server, ca, serverName: undefined, insecure: false, user: {}, ...changed };
  const world = { clock: systemClock, files: systemFiles, processes: systemProcesses, userAgent: "test" };
  const transport = openKubeTransport(access, { ...world, ...(environment && { environment }) }, liveness);
  opened.push(() => transport[Symbol.dispose]());
  return transport;
}

async function send(transport: KubeTransport, path: string, signal = new AbortController().signal) {
  return await transport.send({ lane: "objects", method: "GET", path, headers: {}, signal });
}

async function ask(transport: KubeTransport): Promise<readonly [version: string, path: string, credentials: string]> {
  return JSON.parse(await text(await send(transport, "/a?b=c")));
}

async function text(response: KubeResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe("a proxy before the API server", () => {
  test("gets a CONNECT with only its own credentials, and forwards HTTP/2", async () => {
    const [port, proxy] = [await http2Server(), await connectProxy(createHttpServer(), basic)];
    const transport = transportTo(`https://127.0.0.1:${port}`, {
      proxyUrl: `http://me:s3cret@127.0.0.1:${proxy.port}`,
    });
    assert.deepEqual(await ask(transport), ["2.0", "/a?b=c", "nothing"]);
    await ask(transport);
    assert.deepEqual(proxy.asked, [[`127.0.0.1:${port}`, basic]], "one connection carries both requests");
    transport[Symbol.dispose]();
    while (proxy.ends.size > 0) await new Promise((done) => setTimeout(done, 5));
  });

  test("of the environment resolves the server's name, and is not used for NO_PROXY", async () => {
    const [port, proxy] = [await http2Server(), await connectProxy()];
    const environment = { HTTPS_PROXY: `127.0.0.1:${proxy.port}`, NO_PROXY: "10.0.0.0/8" };
    assert.equal((await ask(transportTo(`https://api.test:${port}`, {}, environment)))[0], "2.0");
    assert.deepEqual(proxy.asked, [[`api.test:${port}`, undefined]]);
    await ask(transportTo(`https://127.0.0.1:${port}`, {}, environment));
    assert.equal(proxy.asked.length, 1, "the machine itself is asked directly");
  });

  test("passes HTTP/1.1 on: within TLS unseen, without TLS by the whole address", async () => {
    const secure = await listen(createHttpsServer(tls, tell));
    const proxy = await connectProxy(createHttpServer(tell), basic);
    const proxyUrl = `http://me:s3cret@127.0.0.1:${proxy.port}`;
    const transport = transportTo(`https://127.0.0.1:${secure}`, { proxyUrl });
    assert.deepEqual(await ask(transport), ["1.1", "/a?b=c", "nothing"]);
    await ask(transport);
    // One to find out which version the server speaks, and one that is kept.
    const connection = [`127.0.0.1:${secure}`, basic];
    assert.deepEqual(proxy.asked, [connection, connection]);
    const plain = transportTo("http://api.test:8080/base", { proxyUrl });
    assert.deepEqual(await ask(plain), ["1.1", "http://api.test:8080/base/a?b=c", basic]);
    assert.equal(proxy.asked.length, 2);
  });

  test("may use TLS: its certificate must be trusted by the kubeconfig or the machine", async () => {
    const [port, proxy] = [await http2Server(), await connectProxy(createHttpsServer(tls, tell), basic)];
    const proxyUrl = `https://me:s3cret@127.0.0.1:${proxy.port}`;
    assert.equal((await ask(transportTo(`https://127.0.0.1:${port}`, { proxyUrl })))[0], "2.0");
    const secure = await listen(createHttpsServer(tls, tell));
    assert.equal((await ask(transportTo(`https://127.0.0.1:${secure}`, { proxyUrl })))[0], "1.1");
    assert.equal((await ask(transportTo("http://api.test", { proxyUrl })))[1], "http://api.test/a?b=c");
    const other = { kind: "inline", text: new CertificateAuthority("other").certificate } as const;
    await assert.rejects(ask(transportTo(`https://127.0.0.1:${port}`, { proxyUrl, ca: other })), {
      name: "KubeConnectionError",
      message:
        `API server 127.0.0.1:${port}: the proxy https://127.0.0.1:${proxy.port}: ` +
        "unable to get local issuer certificate",
    });
  });

  test("may have its certificate from an intermediate authority without a root", async () => {
    const between = new CertificateAuthority("cluster", authority);
    const own = between.issue({ subject: { commonName: "api" }, names: ["127.0.0.1"], usages: ["server"] });
    const served = { cert: own.certificate, key: own.key };
    const [port, proxy] = [
      await listen(createHttpsServer(served, tell)),
      await connectProxy(createHttpsServer(served)),
    ];
    const ca = { kind: "inline", text: between.certificate } as const;
    const proxyUrl = `https://127.0.0.1:${proxy.port}`;
    assert.equal((await ask(transportTo(`https://127.0.0.1:${port}`, { proxyUrl, ca })))[0], "1.1");
  });

  test("that refuses is named without its credentials, with its response", async () => {
    const [port, proxy] = [await http2Server(), await connectProxy(createHttpServer(), basic)];
    const refused = async (proxyUrl: string, problem: string): Promise<void> => {
      await assert.rejects(ask(transportTo(`https://127.0.0.1:${port}`, { proxyUrl })), {
        name: "KubeConnectionError",
        message: `API server 127.0.0.1:${port}: the proxy http://127.0.0.1:${problem}`,
      });
    };
    await refused(
      `http://me:wr0ng@127.0.0.1:${proxy.port}`,
      `${proxy.port}: it answered 407 Proxy Authentication Required: add a valid user and password to its URL`,
    );
    await refused(`http://me:s3cret@127.0.0.1:1`, "1: connect ECONNREFUSED 127.0.0.1:1");
    const closing = createHttpServer().on("connect", (_request, client: Socket) => void client.destroy());
    const closed = await listen(closing);
    await refused(`http://127.0.0.1:${closed}`, `${closed}: socket hang up`);
    const ignorant = await listen(createHttpServer((_request, response) => void response.end()));
    await refused(`http://127.0.0.1:${ignorant}`, `${ignorant}: socket hang up`);
  });

  test("that never responds is dropped with its waiting requests", async () => {
    for (const [scheme, waits] of [
      ["https", "a CONNECT"],
      ["http", "a request"],
    ]) {
      const silent = createHttpServer(() => {});
      silent.on("connect", (_request, client: Socket) => client.resume().on("end", () => client.end()));
      const proxyUrl = `http://127.0.0.1:${await listen(silent)}`;
      const transport = transportTo(`${scheme}://api.test`, { proxyUrl });
      const over = new AbortController();
      setTimeout(() => over.abort(new Error("too late")), 50);
      await assert.rejects(send(transport, "/", over.signal), /^Error: too late$/, waits);
      transport[Symbol.dispose]();
      await new Promise((done) => silent.close(done));
    }
  });

  test("that never answers over HTTP/1.1 is named with the limit", async () => {
    const silent = createHttpServer(() => {});
    silent.on("connect", (_request, client: Socket) => client.resume().on("end", () => client.end()));
    const asked = new Promise<void>((done) => void silent.once("connect", () => done()));
    const proxy = new URL(`http://me:s3cret@127.0.0.1:${await listen(silent)}`);
    const clock = new ManualClock();
    const endpoint = { url: new URL("https://api.test"), ca: undefined, serverName: undefined, insecure: false, proxy };
    const nobody = { token: undefined, certificate: undefined };
    const connecting = connectionsThrough(proxy, endpoint, nobody, clock, new AbortController().signal);
    const failed = new Promise<Error | null>((done) => void connecting?.({}, done));
    await asked;
    await clock.advance(10_000);
    assert.equal(
      (await failed)?.message,
      `API server api.test: no connection through the proxy http://${proxy.host} within 10 s`,
    );
    assert.deepEqual(clock.waits, []);
  });

  test("does not keep a half-dead connection alive: the server behind it is pinged", async () => {
    const [port, proxy] = [await http2Server(), await connectProxy()];
    const proxyUrl = `http://127.0.0.1:${proxy.port}`;
    const short = { quietMs: 50, answerMs: 100 };
    const transport = transportTo(`https://127.0.0.1:${port}`, { proxyUrl }, {}, short);
    let error: unknown;
    const watch = text(await send(transport, "/wait")).catch((reason: unknown) => (error = reason));
    await new Promise((done) => setTimeout(done, 400));
    assert.equal(error, undefined, "it lives while the pings are answered");
    for (const end of proxy.ends) end.unpipe().pause();
    await watch;
    assert.match(String(error), /no data received for 0\.\d+ s/);
    assert.equal((await ask(transport))[0], "2.0");
  });
});
