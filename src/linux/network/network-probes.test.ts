import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import * as http from "node:http";
import * as http2 from "node:http2";
import * as https from "node:https";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type HttpProbeRequest, ProbeTargetError } from "../../ports/network-probes.ts";
import { httpGetRequest } from "../../runtime/operations/http-get-action.ts";
import { systemNetworkProbes as probes } from "./network-probes.ts";
import { decodeStatus, encodeRequest } from "./probe-grpc.ts";

const { signal: never } = new AbortController();

/** What Kubernetes sends for an httpGet action: recorded from Kubernetes 1.36.2, by Go 1.26's client. */
interface RecordedRequest {
  readonly action: Parameters<typeof httpGetRequest>[0];
  /** The pod's; default 10.0.0.2. */
  readonly podIP?: string;
  /** The opened connection, and every byte on it; unset: there was none. */
  readonly dialled?: string;
  readonly sent?: string;
  /** Why no request could be made or sent. */
  readonly refused?: string;
  readonly failed?: string;
}

const requestsFile = new URL("../../../test/fixtures/http-get/requests.jsonl", import.meta.url);
const recordedRequests = readFileSync(requestsFile, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as RecordedRequest);

/** Listens on a free loopback port until disposed of; remaining connections are closed. */
async function listen(server: Server | http2.Http2Server): Promise<{ readonly port: number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function get(port: number, path: string, change: Partial<HttpProbeRequest> = {}): HttpProbeRequest {
  const headers = [["Host", `127.0.0.1:${port}`]] as const;
  return { scheme: "http", host: "127.0.0.1", port, path, headers, ...change };
}

const isTargetError = (pattern: RegExp) => (error: unknown) =>
  error instanceof ProbeTargetError && pattern.test(error.message);

describe("an HTTP probe", () => {
  test("sends only the given headers, repeated ones too, and keeps no connection open", async () => {
    let seen: readonly string[] = [];
    const server = http.createServer((request, response) => {
      seen = request.rawHeaders;
      response.end("ok");
    });
    await using running = await listen(server);
    const headers = [
      ["Host", "app.example"],
      ["X-A", "1"],
      ["X-A", "2"],
    ] as const;
    assert.deepEqual(await probes.httpGet(get(running.port, "/a?b=c", { headers }), never), { status: 200 });
    assert.deepEqual(seen, ["Host", "app.example", "X-A", "1", "X-A", "2", "Connection", "close"]);
  });

  test("accepts every status as a response", async () => {
    const server = http.createServer((request, response) => {
      response.writeHead(Number(request.url?.slice(1))).end();
    });
    await using running = await listen(server);
    for (const status of [200, 204, 304, 404, 500, 503]) {
      assert.equal((await probes.httpGet(get(running.port, `/${status}`), never)).status, status);
    }
  });

  test("follows redirects on the same host and reports one to another host", async () => {
    const server = http.createServer((request, response) => {
      const target = {
        "/a": "/b?c",
        "/away": "http://elsewhere.example/",
        "/nowhere": "mailto:x",
        "/loop": "/loop",
        "/odd": "gopher://127.0.0.1/",
        "/port": "http://127.0.0.1:99999/",
        "/broken": "/%zz",
        "/long": `http://${"a".repeat(9_000)}/`,
        "/longScheme": `${"a".repeat(9_000)}://127.0.0.1/`,
      };
      const location = Object.entries(target).find(([path]) => path === request.url)?.[1];
      if (location === undefined) response.end();
      else response.writeHead(302, { location }).end(`see <${location}>`);
    });
    await using running = await listen(server);
    assert.deepEqual(await probes.httpGet(get(running.port, "/a"), never), { status: 200 });
    assert.deepEqual(await probes.httpGet(get(running.port, "/away"), never), {
      status: 302,
      body: Buffer.from("see <http://elsewhere.example/>"),
      redirectedTo: "elsewhere.example",
    });
    assert.equal((await probes.httpGet(get(running.port, "/nowhere"), never)).redirectedTo, "");
    await assert.rejects(probes.httpGet(get(running.port, "/loop"), never), isTargetError(/10 redirects/));
    await assert.rejects(probes.httpGet(get(running.port, "/odd"), never), isTargetError(/scheme gopher/));
    assert.equal((await probes.httpGet(get(running.port, "/long"), never)).redirectedTo, "(9000 characters)");
    await assert.rejects(probes.httpGet(get(running.port, "/longScheme"), never), isTargetError(/scheme \(9000 /));
    await assert.rejects(probes.httpGet(get(running.port, "/port"), never), isTargetError(/port 99999/));
    await assert.rejects(probes.httpGet(get(running.port, "/broken"), never), isTargetError(/invalid URL/));
  });

  test("keeps 10 KiB of a redirect's body, chunked or not, and nothing of another response's", async () => {
    const server = http.createServer((request, response) => {
      const [, status = "", length = ""] = request.url?.split("/") ?? [];
      const head = length === "" ? {} : { "content-length": length };
      response.writeHead(Number(status), head);
      for (let piece = 0; piece < 30; piece++) response.write(String(piece % 10).repeat(1000));
      response.end();
    });
    await using running = await listen(server);
    const said = Array.from({ length: 30 }, (_, piece) => String(piece % 10).repeat(1000)).join("");
    for (const path of ["/302", "/300/30000", "/399"]) {
      const { body } = await probes.httpGet(get(running.port, path), never);
      assert.equal(Buffer.from(body ?? []).toString(), said.slice(0, 10 * 1024), path);
    }
    for (const path of ["/200", "/404", "/500/30000"]) {
      assert.equal((await probes.httpGet(get(running.port, path), never)).body, undefined, path);
    }
  });

  test("sends byte by byte what Kubernetes sends for an httpGet action", async () => {
    let seen = "";
    const server = createServer((socket) => {
      socket.on("data", (chunk) => (seen += chunk.toString()));
      socket.on("data", () => seen.endsWith("\r\n\r\n") && socket.end("HTTP/1.1 204 No Content\r\n\r\n"));
    });
    await using running = await listen(server);
    const ports = [{ name: "web", containerPort: 8080 }, { containerPort: 9090 }];
    for (const { action, podIP = "10.0.0.2", dialled, sent, refused, failed } of recordedRequests) {
      const what = JSON.stringify(action);
      seen = "";
      const ask = async (): Promise<string> => {
        const request = httpGetRequest(action, ports, podIP, "kube-probe/1.36");
        await probes.httpGet({ ...request, scheme: "http", host: "127.0.0.1", port: running.port }, never);
        return request.host.includes(":") ? `[${request.host}]:${request.port}` : `${request.host}:${request.port}`;
      };
      if (sent === undefined) {
        // A request that Go's client refuses to send is the container's failure; one that cannot be made says nothing
        // about it.
        const isRight = (error: unknown): boolean =>
          error instanceof Error && error instanceof ProbeTargetError === (refused === undefined);
        await assert.rejects(ask, isRight, `${what} ${refused ?? failed}`);
        assert.equal(seen, "", what);
      } else {
        assert.equal(await ask(), dialled, what);
        assert.equal(seen, sent, what);
      }
    }
    assert.equal(recordedRequests.length, 153);
  });

  test("reads at most 10 KiB of an endless body", async () => {
    const server = http.createServer((_request, response) => {
      const more = (): void => {
        while (response.writable && response.write(Buffer.alloc(4096)));
      };
      response.on("drain", more);
      response.on("error", () => {});
      more();
    });
    await using running = await listen(server);
    assert.deepEqual(await probes.httpGet(get(running.port, "/"), never), { status: 200 });
  });

  test("gives no verdict when the body is cut off", async () => {
    const server = http.createServer((_request, response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("half", () => response.destroy());
    });
    await using running = await listen(server);
    await assert.rejects(
      probes.httpGet(get(running.port, "/"), never),
      (error) =>
        error instanceof Error && !(error instanceof ProbeTargetError) && error.message.includes("ended early"),
    );
  });

  test("reports why there is no response", async () => {
    const gone = await listen(createServer());
    await gone[Symbol.asyncDispose]();
    await assert.rejects(probes.httpGet(get(gone.port, "/"), never), isTargetError(/^connection refused$/));
    await using rude = await listen(createServer((socket) => socket.resetAndDestroy()));
    await assert.rejects(probes.httpGet(get(rude.port, "/"), never), isTargetError(/reset by the container/));
    await using foreign = await listen(createServer((socket) => socket.end("SSH-2.0-x\r\n\r\n")));
    await assert.rejects(probes.httpGet(get(foreign.port, "/"), never), isTargetError(/./));
  });

  test("ends at once when canceled, and closes its connection", async () => {
    const closed = Promise.withResolvers<void>();
    const server = createServer((socket) => {
      socket.resume();
      socket.once("close", () => closed.resolve());
      socket.on("error", () => {});
    });
    await using running = await listen(server);
    const controller = new AbortController();
    const probing = probes.httpGet(get(running.port, "/"), controller.signal);
    setTimeout(() => controller.abort(new Error("enough")), 20);
    await assert.rejects(probing, /enough/);
    await closed.promise;
  });

  test("uses no proxy", async () => {
    process.env["HTTP_PROXY"] = "http://127.0.0.1:9";
    try {
      await using running = await listen(http.createServer((_request, response) => response.end()));
      assert.equal((await probes.httpGet(get(running.port, "/"), never)).status, 200);
    } finally {
      delete process.env["HTTP_PROXY"];
    }
  });

  test("accepts any certificate", async () => {
    const directory = mkdtempSync(join(tmpdir(), "podwright-probe-"));
    try {
      const [key, cert] = [join(directory, "key"), join(directory, "cert")];
      const options = [
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        "/CN=x",
      ];
      execFileSync("openssl", ["req", ...options, "-keyout", key, "-out", cert], { stdio: "ignore" });
      const server = https.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) =>
        response.end("secret"),
      );
      await using running = await listen(server);
      assert.equal((await probes.httpGet(get(running.port, "/", { scheme: "https" }), never)).status, 200);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test("over TLS reports that the server speaks plain HTTP, or cuts the connection off", async () => {
    await using plain = await listen(http.createServer((_request, response) => response.end("ok")));
    await assert.rejects(
      probes.httpGet(get(plain.port, "/", { scheme: "https" }), never),
      (error) => error instanceof ProbeTargetError && error.plainText && error.message === "the response is not TLS",
    );
    await using mute = await listen(createServer((socket) => socket.end()));
    await assert.rejects(
      probes.httpGet(get(mute.port, "/", { scheme: "https" }), never),
      (error) => error instanceof ProbeTargetError && !error.plainText && error.message !== "",
    );
  });

  test("resolves localhost without a name server, and reports an unresolvable name", async () => {
    await using running = await listen(http.createServer((_request, response) => response.end()));
    assert.equal((await probes.httpGet(get(running.port, "/", { host: "localhost" }), never)).status, 200);
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("out of time")), 300);
    await assert.rejects(
      probes.httpGet(get(running.port, "/", { host: "no-such-name.invalid" }), controller.signal),
      /no address of no-such-name\.invalid|out of time/,
    );
  });
});

describe("a TCP probe", () => {
  test("succeeds when the connection opens, and resets it to leave none in TIME_WAIT", async () => {
    const ended = Promise.withResolvers<string>();
    const server = createServer((socket) => {
      socket.on("error", (error) => ended.resolve(error.message));
      socket.once("end", () => ended.resolve("ended in the usual way"));
      socket.resume();
    });
    await using running = await listen(server);
    await probes.tcpConnect("127.0.0.1", running.port, never);
    assert.match(await ended.promise, /ECONNRESET/);
  });

  test("fails without a listener", async () => {
    const gone = await listen(createServer());
    await gone[Symbol.asyncDispose]();
    await assert.rejects(probes.tcpConnect("127.0.0.1", gone.port, never), isTargetError(/connection refused/));
  });
});

describe("a gRPC probe", () => {
  const frame = (...message: number[]): Buffer => Buffer.from([0, 0, 0, 0, message.length, ...message]);

  function healthServer(answer: (service: string) => { readonly body?: Buffer; readonly status: string }) {
    const server = http2.createServer();
    server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
      const parts: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => parts.push(chunk));
      stream.on("error", () => {});
      stream.once("end", () => {
        assert.equal(headers[":path"], "/grpc.health.v1.Health/Check");
        assert.equal(headers["user-agent"], "kube-probe/1.36");
        const { body, status } = answer(Buffer.concat(parts).subarray(7).toString());
        stream.respond({ "content-type": "application/grpc" }, { waitForTrailers: true });
        stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": status, "grpc-message": "no%20way" }));
        stream.end(body);
      });
    });
    return server;
  }

  test("returns the status of the named service", async () => {
    const server = healthServer((service) => ({ status: "0", body: frame(0x08, service === "well" ? 1 : 2) }));
    await using running = await listen(server);
    const check = (service: string) => probes.grpcHealth("127.0.0.1", running.port, service, never);
    assert.deepEqual(await check("well"), { code: 0, status: "SERVING" });
    assert.deepEqual(await check(""), { code: 0, status: "NOT_SERVING" });
  });

  test("returns gRPC's code and message", async () => {
    await using running = await listen(healthServer(() => ({ status: "12" })));
    const answer = await probes.grpcHealth("127.0.0.1", running.port, "", never);
    assert.deepEqual(answer, { code: 12, message: "no way" });
  });

  test("acknowledges the settings of a server that waits for that", async () => {
    const server = http2.createServer();
    server.on("session", (session) => session.on("error", () => {}));
    server.on("stream", (stream: http2.ServerHttp2Stream) => {
      stream.on("error", () => {});
      stream.session?.once("localSettings", () => {
        stream.respond({ "content-type": "application/grpc", "grpc-status": "5" }, { endStream: true });
      });
    });
    await using running = await listen(server);
    const answer = await probes.grpcHealth("127.0.0.1", running.port, "", AbortSignal.timeout(5_000));
    assert.deepEqual(answer, { code: 5, message: "" });
  });

  test("fails on servers that do not speak gRPC", async () => {
    await using web = await listen(http.createServer((_request, response) => response.end("hello")));
    await assert.rejects(probes.grpcHealth("127.0.0.1", web.port, "", never), isTargetError(/./));
    const plain = http2.createServer((_request, response) => response.end("hello"));
    await using running = await listen(plain);
    await assert.rejects(probes.grpcHealth("127.0.0.1", running.port, "", never), isTargetError(/not gRPC/));
    const refusing = http2.createServer();
    refusing.on("stream", (stream: http2.ServerHttp2Stream) => {
      stream.on("error", () => {});
      stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    });
    await using refused = await listen(refusing);
    const reset = isTargetError(/^the server reset the request: REFUSED_STREAM$/);
    await assert.rejects(probes.grpcHealth("127.0.0.1", refused.port, "", never), reset);
    await using long = await listen(healthServer(() => ({ status: "0", body: Buffer.alloc(11 * 1024) })));
    await assert.rejects(probes.grpcHealth("127.0.0.1", long.port, "", never), isTargetError(/too long/));
    await using mute = await listen(createServer((socket) => socket.end()));
    await assert.rejects(probes.grpcHealth("127.0.0.1", mute.port, "", never), isTargetError(/./));
  });

  test("is canceled while the server is silent", async () => {
    await using running = await listen(createServer((socket) => socket.on("error", () => {}).resume()));
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("enough")), 20);
    await assert.rejects(probes.grpcHealth("127.0.0.1", running.port, "", controller.signal), /enough/);
  });

  test("encodes requests and decodes responses, skipping unknown fields", () => {
    assert.deepEqual([...encodeRequest("")], [0, 0, 0, 0, 0]);
    assert.deepEqual([...encodeRequest("ab")], [0, 0, 0, 0, 4, 0x0a, 2, 0x61, 0x62]);
    assert.equal(encodeRequest("x".repeat(300)).length, 5 + 3 + 300);
    assert.equal(decodeStatus(frame()), "UNKNOWN");
    assert.equal(decodeStatus(frame(0x12, 2, 0x61, 0x62, 0x08, 1)), "SERVING");
    assert.equal(decodeStatus(frame(0x08, 3)), "SERVICE_UNKNOWN");
    assert.equal(decodeStatus(frame(0x08, 9)), "9");
    assert.throws(() => decodeStatus(frame(0x08, 1).subarray(0, 6)), isTargetError(/truncated/));
    assert.throws(() => decodeStatus(frame(0x0b)), isTargetError(/not a protobuf/));
    assert.throws(
      () => decodeStatus(frame(...Array.from({ length: 20 }, () => 0xff))),
      isTargetError(/not a protobuf/),
    );
  });
});
