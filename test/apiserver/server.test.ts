import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { after, before, describe, it } from "node:test";
import { at, type Fields, fieldsAt, itemsAt, textAt } from "./objects.ts";
import { TestApiServer } from "./server.ts";
import { podNamed, TestClient } from "./testing.ts";

const pods = "/api/v1/namespaces/default/pods";

describe("the API server for tests", () => {
  let server: TestApiServer;
  let client: TestClient;
  before(async () => {
    server = await TestApiServer.start({ schedules: false });
    client = new TestClient(server, server.credentials("admin", ["system:masters"]));
  });
  after(async () => {
    client[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  it("lets a driver's count change in a CSINode, and nothing else of its entry", async () => {
    const path = "/apis/storage.k8s.io/v1/csinodes";
    const body = (driver: Fields): Fields => ({
      metadata: { name: "node1" },
      spec: { drivers: [{ name: "d", ...driver }] },
    });
    const put = async (driver: Fields) => await client.request("PUT", `${path}/node1`, { body: body(driver) });
    const first = { nodeID: "i-1", topologyKeys: ["zone"] };
    assert.equal((await client.request("POST", path, { body: body(first) })).code, 201);
    assert.equal((await put({ ...first, allocatable: { count: 3 } })).code, 200);
    for (const changed of [
      { ...first, nodeID: "i-2" },
      { nodeID: "i-1", topologyKeys: null },
    ]) {
      const refused = await put(changed);
      assert.deepEqual([refused.code, at(refused.body, "reason")], [422, "Invalid"]);
      assert.match(textAt(refused.body, "message"), /spec\.drivers: Invalid value: field is immutable/);
    }
    const none = { metadata: { name: "node1" }, spec: { drivers: [] } };
    assert.equal((await client.request("PUT", `${path}/node1`, { body: none })).code, 200);
    for (const nodeID of ["", "x".repeat(257)]) assert.equal((await put({ nodeID })).code, 422, nodeID);
    assert.equal((await put({ nodeID: "i-2" })).code, 200);
  });

  it("refuses a Node's label whose value is none", async () => {
    const node = { metadata: { name: "labelled", labels: { zone: "z1", empty: "" } } };
    assert.equal((await client.request("POST", "/api/v1/nodes", { body: node })).code, 201);
    for (const zone of ["no label!", "-z", "z".repeat(64)]) {
      const refused = await client.request("PATCH", "/api/v1/nodes/labelled/status", {
        contentType: "application/strategic-merge-patch+json",
        body: { metadata: { labels: { zone } } },
      });
      assert.deepEqual([zone, refused.code], [zone, 422]);
    }
  });

  it("creates, reads, updates, patches and deletes over TLS with a client certificate", async () => {
    const created = await client.request("POST", pods, { body: podNamed("life") });
    assert.equal(created.code, 201);
    assert.equal(at(created.body, "status.phase"), "Pending");
    assert.equal(at(created.body, "metadata.generation"), 1);
    const path = `${pods}/life`;
    assert.deepEqual((await client.get(path)).body, created.body);

    const metadata = { ...fieldsAt(created.body, "metadata"), labels: { app: "web" } };
    const updated = await client.request("PUT", path, { body: { ...created.body, metadata } });
    assert.equal(updated.code, 200);
    assert.notEqual(at(updated.body, "metadata.resourceVersion"), at(created.body, "metadata.resourceVersion"));
    const stale = await client.request("PUT", path, { body: created.body });
    assert.equal(stale.code, 409);
    assert.match(textAt(stale.body, "message"), /the object has been modified/);

    const patched = await client.request("PATCH", path, {
      contentType: "application/strategic-merge-patch+json",
      body: { spec: { containers: [{ name: "app", image: "podwright.local/demo:2" }] } },
    });
    assert.equal(itemsAt(patched.body, "spec.containers")[0]?.["image"], "podwright.local/demo:2");
    assert.equal(at(patched.body, "metadata.generation"), 2);
    assert.equal((await client.request("DELETE", path)).code, 200);
    assert.equal((await client.get(path)).code, 404);
  });

  it("watches from a list, and reports every change once", async () => {
    const list = await client.get(`${pods}?limit=500`);
    const from = textAt(list.body, "metadata.resourceVersion");
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { type, object } of client.watch(
        `${pods}?watch=1&resourceVersion=${from}&labelSelector=app=w`,
      )) {
        seen.push(`${type} ${textAt(object, "metadata.name")}`);
        if (type === "DELETED") return;
      }
    })();
    server.admin.create(podNamed("other"));
    server.admin.create(podNamed("watched", {}, { labels: { app: "w" } }));
    server.admin.patch("pods", "default/watched", { metadata: { annotations: { a: "b" } } });
    server.admin.patch("pods", "default/watched", { metadata: { labels: { app: null } } });
    await watching;
    assert.deepEqual(seen, ["ADDED watched", "MODIFIED watched", "DELETED watched"]);
  });

  it("sends GOAWAY to HTTP/2 clients, and keeps open streams", async () => {
    const { certificate, key } = server.credentials("admin", ["system:masters"]);
    const session = connect(server.url, { ca: server.authority.certificate, cert: certificate, key });
    const watching = session.request({
      ":path": `/api/v1/pods?watch=1&resourceVersion=${server.registry.store.revision}`,
    });
    watching.setEncoding("utf8");
    await once(watching, "response");
    assert.equal(session.remoteSettings.maxConcurrentStreams, 100);
    const told = once(session, "goaway");
    server.goAway();
    await told;
    server.admin.create(podNamed("after-goaway"));
    const [event] = (await once(watching, "data")) as [string];
    assert.match(event, /"ADDED".*"after-goaway"/);
    session.destroy();
  });

  it("speaks HTTP/2 with capable clients", async () => {
    const { certificate, key } = server.credentials("admin", ["system:masters"]);
    const session = connect(server.url, { ca: server.authority.certificate, cert: certificate, key });
    const stream = session.request({ ":path": "/api/v1/nodes" });
    const chunks: Buffer[] = [];
    for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    session.close();
    assert.equal(at(JSON.parse(Buffer.concat(chunks).toString()), "kind"), "NodeList");
  });
});
