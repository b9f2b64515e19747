import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ApiError } from "./api-error.ts";
import { at, fieldsAt, type Fields, itemsAt, textAt } from "./objects.ts";
import { TestApiServer } from "./server.ts";
import { TestClient } from "./testing.ts";

const maps = "/api/v1/namespaces/watched/configmaps";

function configMap(name: string, value = ""): Fields {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "watched" }, data: { value } };
}

describe("lists and watches", () => {
  let server: TestApiServer;
  let client: TestClient;
  before(async () => {
    server = await TestApiServer.start({ bookmarkMs: 50, keptEvents: 100 });
    client = new TestClient(server, server.credentials("admin", ["system:masters"]));
    server.admin.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "watched" } });
    for (const name of ["a", "b", "c", "d", "e"]) server.admin.create(configMap(name));
    await server.admin.until("configmaps", "watched/kube-root-ca.crt", (found) => found !== undefined);
    server.admin.delete("configmaps", "watched/kube-root-ca.crt");
  });
  after(async () => {
    client[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const revision = (): number => server.registry.store.revision;
  /** The first events of a watch, fewer if it ends before. */
  async function take(path: string, count: number): Promise<{ type: string; object: Fields }[]> {
    const events: { type: string; object: Fields }[] = [];
    if (count === 0) return events;
    for await (const event of client.watch(path)) {
      events.push(event);
      if (events.length === count) break;
    }
    return events;
  }

  it("all pages of a list show one revision, whatever changes meanwhile", async () => {
    const names: string[] = [];
    let token = "";
    let page = 0;
    do {
      const { body } = await client.get(`${maps}?limit=2${token === "" ? "" : `&continue=${token}`}`);
      names.push(...itemsAt(body, "items").map((each) => textAt(each, "metadata.name")));
      if (page === 0) assert.equal(at(body, "metadata.remainingItemCount"), 3);
      token = textAt(body, "metadata.continue");
      if (page++ === 0) {
        server.admin.create(configMap("bb"));
        server.admin.delete("configmaps", "watched/d");
      }
    } while (token !== "");
    assert.deepEqual(names, ["a", "b", "c", "d", "e"]);
    server.admin.delete("configmaps", "watched/bb");
    server.admin.create(configMap("d"));
  });
  it("a page of a list that is too old is rejected with 410", async () => {
    const { body } = await client.get(`${maps}?limit=2`);
    server.registry.store.compact();
    const next = await client.get(`${maps}?limit=2&continue=${textAt(body, "metadata.continue")}`);
    assert.deepEqual([next.code, next.body["reason"]], [410, "Expired"]);
  });
  it("a list can show an exact revision, but not a future one", async () => {
    const earlier = revision();
    server.admin.create(configMap("f"));
    const exact = await client.get(`${maps}?resourceVersion=${earlier}&resourceVersionMatch=Exact`);
    assert.equal(itemsAt(exact.body, "items").length, 5);
    assert.equal(itemsAt((await client.get(maps)).body, "items").length, 6);
    const future = await client.get(`${maps}?resourceVersion=${revision() + 100}`);
    assert.equal(future.code, 504);
    assert.match(textAt(future.body, "message"), /Too large resource version/);
    server.admin.delete("configmaps", "watched/f");
  });
  it("a watch without a revision begins with the existing objects", async () => {
    const events = await take(`${maps}?watch=1`, 5);
    assert.deepEqual(
      events.map(({ type }) => type),
      ["ADDED", "ADDED", "ADDED", "ADDED", "ADDED"],
    );
  });
  it("a watch list marks the end of the existing objects by a bookmark", async () => {
    const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const last = (await take(`${maps}?${query}`, 6)).at(-1);
    assert.equal(last?.type, "BOOKMARK");
    assert.equal(fieldsAt(last?.object, "metadata.annotations")["k8s.io/initial-events-end"], "true");
    assert.equal(textAt(last?.object, "metadata.resourceVersion"), String(revision()));
    assert.equal((await client.get(`${maps}?watch=1&sendInitialEvents=true`)).code, 422);
  });
  it("bookmarks report the revision while the watch has no events", async () => {
    server.admin.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "elsewhere" } });
    const [bookmark] = await take(`${maps}?watch=1&resourceVersion=${revision()}&allowWatchBookmarks=true`, 1);
    assert.deepEqual([bookmark?.type, bookmark?.object["kind"]], ["BOOKMARK", "ConfigMap"]);
    assert.ok(Number(textAt(bookmark?.object, "metadata.resourceVersion")) <= revision());
  });
  it("a watch continues from an older revision, and gets 410 in its stream if that is no longer kept", async () => {
    const earlier = revision();
    server.admin.patch("configmaps", "watched/a", { data: { value: "1" } });
    const [event] = await take(`${maps}?watch=1&resourceVersion=${earlier}`, 1);
    assert.deepEqual([event?.type, at(event?.object, "data.value")], ["MODIFIED", "1"]);
    for (let step = 0; step < 150; step++) {
      server.admin.patch("configmaps", "watched/a", { data: { value: `${step}` } });
    }
    const [error] = await take(`${maps}?watch=1&resourceVersion=${earlier}`, 1);
    assert.deepEqual([error?.type, at(error?.object, "code"), at(error?.object, "reason")], ["ERROR", 410, "Expired"]);
  });
  it("a watch ends at its timeout", async () => {
    const started = performance.now();
    assert.deepEqual(await take(`${maps}?watch=1&resourceVersion=${revision()}&timeoutSeconds=1`, 100), []);
    assert.ok(performance.now() - started < 3000);
    assert.equal(server.watches.size, 0);
  });
  it("watches can be cut cleanly, with an error, abruptly, or go silent", async () => {
    const path = `${maps}?watch=1&resourceVersion=${revision()}`;
    const opened = async (): Promise<void> => {
      while (server.watches.size === 0) await new Promise((done) => setTimeout(done, 5));
    };
    const clean = take(path, 9);
    await opened();
    server.cutWatches({ resource: "configmaps" });
    assert.deepEqual(await clean, []);

    const failing = take(path, 9);
    await opened();
    server.cutWatches({}, { error: new ApiError(500, "InternalError", "etcd is gone") });
    assert.equal(at((await failing)[0]?.object, "message"), "etcd is gone");

    const broken = assert.rejects(take(path, 9), /aborted|socket hang up|ECONNRESET/);
    await opened();
    server.cutWatches({}, { abruptly: true });
    await broken;

    const silent = take(`${path}&timeoutSeconds=1`, 9);
    await opened();
    server.cutWatches({}, { silently: true });
    server.admin.patch("configmaps", "watched/b", { data: { value: "unseen" } });
    assert.deepEqual(await silent, []);
  });
  it("reads of any revision can lag", async () => {
    using _lag = server.lagReads();
    server.admin.patch("configmaps", "watched/c", { data: { value: "new" } });
    const value = async (query: string): Promise<string> =>
      textAt((await client.get(`${maps}/c${query}`)).body, "data.value");
    assert.deepEqual([await value("?resourceVersion=0"), await value("")], ["", "new"]);
    const { body } = await client.get(`${maps}?resourceVersion=0`);
    assert.ok(Number(textAt(body, "metadata.resourceVersion")) < revision());
  });
  it("events are equal in both versions", async () => {
    const regarding = { kind: "Pod", namespace: "watched", name: "p" };
    const path = "/apis/events.k8s.io/v1/namespaces/watched/events";
    const event = { metadata: { name: "e.1" }, regarding, note: "hello", reason: "Test", type: "Normal" };
    assert.equal((await client.request("POST", path, { body: event })).code, 201);
    const old = await client.get("/api/v1/namespaces/watched/events?fieldSelector=involvedObject.name%3Dp");
    assert.deepEqual(
      itemsAt(old.body, "items").map(({ message }) => message),
      ["hello"],
    );
    const chosen = await client.get(`${path}?fieldSelector=regarding.name%3Dp`);
    assert.deepEqual(
      itemsAt(chosen.body, "items").map(({ note }) => note),
      ["hello"],
    );
  });
});
