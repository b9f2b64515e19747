import assert from "node:assert/strict";
import { connect, type OutgoingHttpHeaders } from "node:http2";
import { after, afterEach, before, describe, it } from "node:test";
import { textAt } from "./objects.ts";
import { TestApiServer } from "./server.ts";
import { podNamed, TestClient } from "./testing.ts";

describe("injected faults", () => {
  let server: TestApiServer;
  let client: TestClient;
  before(async () => {
    server = await TestApiServer.start();
    client = new TestClient(server, server.credentials("admin", ["system:masters"]));
  });
  afterEach(() => server.faults.clear());
  after(async () => {
    client[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });
  const code = async (path: string): Promise<number> => (await client.get(path)).code;

  it("fail matching requests, a given number of times", async () => {
    server.faults.add({ verb: "list", resource: "pods" }, { code: 429, retryAfterSeconds: 3 }, 2);
    assert.equal(await code("/api/v1/nodes"), 200);
    const refused = await client.get("/api/v1/pods");
    assert.deepEqual([refused.code, refused.headers["retry-after"]], [429, "3"]);
    assert.equal(textAt(refused.body, "reason"), "TooManyRequests");
    assert.equal(await code("/api/v1/pods"), 429);
    assert.equal(await code("/api/v1/pods"), 200);
    assert.equal(server.faults.met, 2);
  });
  it("last until they are disposed of", async () => {
    {
      using _broken = server.faults.add({}, { code: 500 });
      assert.equal(await code("/api/v1/pods"), 500);
    }
    assert.equal(await code("/api/v1/pods"), 200);
  });
  it("delay responses", async () => {
    server.faults.add({ user: "admin" }, { latencyMs: 120 }, 1);
    const started = performance.now();
    await code("/api/v1/pods");
    assert.ok(performance.now() - started >= 115);
  });
  it("break connections before or after a request is carried out", async () => {
    const create = async (name: string): Promise<number> =>
      (await client.request("POST", "/api/v1/namespaces/default/pods", { body: podNamed(name) })).code;
    server.faults.add({ verb: "create" }, { how: "reset" }, 1);
    await assert.rejects(create("never"), /socket hang up|ECONNRESET/);
    assert.equal(server.admin.find("pods", "default/never"), undefined);
    server.faults.add({ verb: "create" }, { how: "lose" }, 1);
    await assert.rejects(create("unanswered"), /socket hang up|ECONNRESET/);
    assert.notEqual(server.admin.find("pods", "default/unanswered"), undefined);
  });
  it("make requests hang", async () => {
    server.faults.add({ resource: "nodes" }, { how: "hang" }, 1);
    const slow = code("/api/v1/nodes").then(
      () => "answered",
      () => "broken",
    );
    const answered = await Promise.race([slow, new Promise((done) => setTimeout(done, 100, "hanging"))]);
    assert.equal(answered, "hanging");
    server.wire.reset();
    assert.equal(await slow, "broken");
  });
  it("take the server down, and bring it back on its port with its data", async () => {
    const { url } = server;
    await server.wire.down();
    await assert.rejects(code("/api/v1/pods"), /ECONNREFUSED|socket hang up|ECONNRESET/);
    await server.wire.up();
    assert.equal(server.url, url);
    assert.equal(await code("/api/v1/namespaces/default/pods/unanswered"), 200);
  });
  it("freeze existing connections, but not new ones", async () => {
    assert.equal(await code("/api/v1/pods"), 200);
    server.wire.freeze();
    const stuck = code("/api/v1/pods").catch(() => -1);
    assert.equal(await Promise.race([stuck, new Promise((done) => setTimeout(done, 100, "stuck"))]), "stuck");
    using another = new TestClient(server, server.credentials("admin", ["system:masters"]));
    assert.equal((await another.get("/api/v1/pods")).code, 200);
    server.wire.reset();
    assert.equal(await stuck, -1);
  });
  it("slow the network down", async () => {
    server.wire.slow(60);
    const started = performance.now();
    assert.equal(await code("/api/v1/pods"), 200);
    assert.ok(performance.now() - started >= 115, "there and back");
    server.wire.slow(0);
  });
  it("reset single HTTP/2 streams", async () => {
    const { certificate, key } = server.credentials("admin", ["system:masters"]);
    const session = connect(server.url, { ca: server.authority.certificate, cert: certificate, key });
    const outcome = async (path: string, headers: OutgoingHttpHeaders = {}, body = ""): Promise<string> => {
      const stream = session.request({ ":path": path, ...headers });
      stream.setEncoding("utf8");
      if (body !== "") stream.end(body);
      let text = "";
      try {
        for await (const chunk of stream as AsyncIterable<string>) text += chunk;
        return (JSON.parse(text) as { readonly kind: string }).kind;
      } catch (error) {
        return error instanceof Error && "code" in error ? String(error.code) : String(error);
      }
    };
    const create = (name: string): Promise<string> =>
      outcome("/api/v1/namespaces/default/pods", { ":method": "POST" }, JSON.stringify(podNamed(name)));
    try {
      server.faults.add({ verb: "list", resource: "pods" }, { how: "reset" }, 1);
      const [pods, nodes] = await Promise.all([outcome("/api/v1/pods"), outcome("/api/v1/nodes")]);
      assert.deepEqual([pods, nodes], ["ERR_HTTP2_STREAM_ERROR", "NodeList"]);
      server.faults.add({ verb: "create" }, { how: "lose" }, 1);
      assert.equal(await create("unanswered-2"), "ERR_HTTP2_STREAM_ERROR");
      assert.notEqual(server.admin.find("pods", "default/unanswered-2"), undefined);
      const watching = outcome(`/api/v1/pods?watch=1&resourceVersion=${server.registry.store.revision}`);
      while (server.watches.size === 0) await new Promise((done) => setTimeout(done, 5));
      server.cutWatches({}, { abruptly: true });
      assert.equal(await watching, "ERR_HTTP2_STREAM_ERROR");
      assert.equal(await create("answered"), "Pod");
      // A client that disconnects during the response does no harm.
      server.faults.add({ verb: "list", resource: "nodes" }, { latencyMs: 30 }, 1);
      session
        .request({ ":path": "/api/v1/nodes" })
        .on("error", () => {})
        .close(8);
      await new Promise((done) => setTimeout(done, 60));
      assert.equal(await outcome("/api/v1/nodes"), "NodeList");
    } finally {
      session.destroy();
    }
  });
  it("appear in the request log", async () => {
    server.requests.clear();
    server.faults.add({ resource: "secrets" }, { code: 503 }, 1);
    await code("/api/v1/secrets");
    const [request] = server.requests.list("list secrets");
    assert.deepEqual([request?.code, request?.user, request?.httpVersion], [503, "admin", "1.1"]);
  });
});
