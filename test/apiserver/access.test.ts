import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import type { Credentials } from "./certificates.ts";
import { at, type Fields, fieldsAt, textAt } from "./objects.ts";
import { TestApiServer } from "./server.ts";
import { nodeNamed, podNamed, TestClient } from "./testing.ts";

const strategic = "application/strategic-merge-patch+json";
const pods = "/api/v1/namespaces/default/pods";

describe("authentication", () => {
  let server: TestApiServer;
  before(async () => {
    server = await TestApiServer.start({ tokens: { secret: { name: "tess", groups: ["testers"] } } });
  });
  after(() => server[Symbol.asyncDispose]());

  async function whoAmI(who: Credentials | undefined, token?: string): Promise<[number, string]> {
    using client = new TestClient(server, who);
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const answer = await client.request("POST", path, { body: {}, ...(token === undefined ? {} : { token }) });
    return [answer.code, textAt(answer.body, "status.userInfo.username") || textAt(answer.body, "reason")];
  }

  it("identifies users by client certificate or token, and rejects invalid ones", async () => {
    assert.deepEqual(await whoAmI(server.credentials("ann", ["team"])), [201, "ann"]);
    assert.deepEqual(await whoAmI(undefined, "secret"), [201, "tess"]);
    assert.deepEqual(await whoAmI(undefined, "wrong"), [401, "Unauthorized"]);
    assert.deepEqual(await whoAmI(undefined), [403, "Forbidden"]);
  });
  it("refuses certificates that are expired, not yet valid or another authority's", async () => {
    const day = 24 * 3_600_000;
    const [past, future] = [new Date(Date.now() - day), new Date(Date.now() + day)];
    assert.equal((await whoAmI(server.credentials("ann", [], { notAfter: past })))[0], 401);
    assert.equal((await whoAmI(server.credentials("ann", [], { notBefore: future })))[0], 401);
    await using other = await TestApiServer.start();
    assert.equal((await whoAmI(other.credentials("ann")))[0], 401);
  });
  it("permits impersonation to those who may", async () => {
    using admin = new TestClient(server, server.credentials("admin", ["system:masters"]));
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const as = async (headers: Readonly<Record<string, string | string[]>>, who = admin): Promise<Fields> => {
      const answer = await who.request("POST", path, { body: {}, headers });
      return answer.code === 201 ? fieldsAt(answer.body, "status.userInfo") : answer.body;
    };
    assert.deepEqual(await as({ "Impersonate-User": "ann" }), { username: "ann", groups: ["system:authenticated"] });
    const whole = {
      "Impersonate-User": "ann",
      "Impersonate-Group": ["a,b", "c"],
      "Impersonate-Uid": "7",
      "Impersonate-Extra-example.com%2Fscope": ["read", "write"],
    };
    assert.deepEqual(await as(whole), {
      username: "ann",
      uid: "7",
      groups: ["a,b", "c", "system:authenticated"],
      extra: { "example.com/scope": ["read", "write"] },
    });
    const account = await as({ "Impersonate-User": "system:serviceaccount:team:robot" });
    assert.deepEqual(account["groups"], [
      "system:serviceaccounts",
      "system:serviceaccounts:team",
      "system:authenticated",
    ]);
    assert.equal((await as({ "Impersonate-User": "system:anonymous" }))["reason"], "Forbidden");
    const nobody = await as({ "Impersonate-Group": "a" });
    assert.deepEqual([nobody["code"], nobody["message"]], [400, "requested [a] without impersonating a user"]);
    using tess = new TestClient(server, server.credentials("tess"));
    assert.equal(
      (await as({ "Impersonate-User": "ann" }, tess))["message"],
      'users "ann" is forbidden: User "tess" cannot impersonate resource "users" in API group "" at the cluster scope',
    );
    const get = await admin.request("GET", "/api/v1/nodes", { headers: { "Impersonate-User": "ann" } });
    assert.match(textAt(get.body, "message"), /User "ann" cannot list resource "nodes"/);
  });
  it("answers reviews of tokens and of access", async () => {
    using client = new TestClient(server, server.credentials("admin", ["system:masters"]));
    const token = await client.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
      body: { spec: { token: "secret" } },
    });
    assert.equal(at(token.body, "status.authenticated"), true);
    assert.equal(textAt(token.body, "status.user.username"), "tess");
    const review = async (user: string): Promise<Fields> => {
      const resourceAttributes = { verb: "get", resource: "nodes", subresource: "proxy", name: "node1" };
      const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
      const { body } = await client.request("POST", path, {
        body: { spec: { user, groups: user === "root" ? ["system:masters"] : [], resourceAttributes } },
      });
      return fieldsAt(body, "status");
    };
    assert.deepEqual(await review("root"), { allowed: true });
    assert.match(textAt(await review("nobody"), "reason"), /User "nobody" cannot get resource "nodes\/proxy"/);
  });
});

describe("a node", () => {
  let server: TestApiServer;
  let node: TestClient;
  before(async () => {
    server = await TestApiServer.start({ schedules: false });
    node = new TestClient(server, server.credentials("system:node:node1", ["system:nodes"]));
  });
  after(async () => {
    node[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });
  let count = 0;
  let own = "";
  let foreign = "";
  beforeEach(() => {
    count++;
    own = `own-${count}`;
    foreign = `foreign-${count}`;
    server.admin.create(podNamed(own, { nodeName: "node1" }));
    server.admin.create(podNamed(foreign, { nodeName: "node2" }));
  });

  it("may register itself and no other node", async () => {
    assert.equal((await node.request("POST", "/api/v1/nodes", { body: nodeNamed("node1") })).code, 201);
    assert.equal((await node.request("POST", "/api/v1/nodes", { body: nodeNamed("node2") })).code, 403);
    const label = { metadata: { labels: { "node-role.kubernetes.io/control-plane": "" } } };
    const labelled = await node.request("PATCH", "/api/v1/nodes/node1", { contentType: strategic, body: label });
    assert.equal(labelled.code, 403);
    assert.match(textAt(labelled.body, "message"), /is not allowed to modify labels/);
    const taints = { spec: { taints: [{ key: "a", effect: "NoSchedule" }] } };
    const tainted = await node.request("PATCH", "/api/v1/nodes/node1", { contentType: strategic, body: taints });
    assert.match(textAt(tainted.body, "message"), /not allowed to modify taints/);
    assert.equal((await node.get("/api/v1/nodes/node1")).code, 200);
    assert.equal((await node.get("/api/v1/nodes")).code, 403);
    assert.equal((await node.get("/api/v1/nodes?fieldSelector=metadata.name%3Dnode1")).code, 200);
  });
  it("may renew only its own lease", async () => {
    const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    const lease = (name: string): Fields => ({ metadata: { name }, spec: { holderIdentity: name } });
    assert.equal((await node.request("POST", leases, { body: lease("node1") })).code, 201);
    assert.equal((await node.request("POST", leases, { body: lease("node2") })).code, 403);
    assert.equal((await node.get(`${leases}/node1`)).code, 200);
    assert.equal((await node.get(`${leases}/node2`)).code, 403);
    const blind = await node.request("PUT", `${leases}/node1`, { body: lease("node1") });
    assert.equal(blind.code, 422, "a lease is updated from a known revision only");
  });
  it("may read its own pods, and write their status", async () => {
    assert.equal((await node.get(`${pods}/${own}`)).code, 200);
    assert.equal((await node.get(`${pods}/${foreign}`)).code, 403);
    assert.equal((await node.get("/api/v1/pods")).code, 403);
    assert.equal((await node.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode1")).code, 200);
    const status = { status: { phase: "Running" } };
    const patch = (name: string): Promise<{ code: number; body: Fields }> =>
      node.request("PATCH", `${pods}/${name}/status`, { contentType: strategic, body: status });
    const patched = await patch(own);
    assert.equal(at(patched.body, "status.phase"), "Running");
    assert.equal((await patch(foreign)).code, 403);
    const whole = await node.request("PATCH", `${pods}/${own}`, { contentType: strategic, body: status });
    assert.equal(whole.code, 403, "the pod itself is not a node's to change");
    const labels = { metadata: { labels: { app: "x" } } };
    const relabelled = await node.request("PATCH", `${pods}/${own}/status`, { contentType: strategic, body: labels });
    assert.match(textAt(relabelled.body, "message"), /cannot update labels through pod status/);
  });
  it("may create its own mirror pods, and delete its own pods", async () => {
    const uid =
      server.admin.find("nodes", "node1")?.metadata.uid ?? server.admin.create(nodeNamed("node1")).metadata.uid;
    const owner = { apiVersion: "v1", kind: "Node", name: "node1", uid, controller: true };
    const mirror = podNamed(
      `mirror-${count}`,
      { nodeName: "node1" },
      {
        annotations: { "kubernetes.io/config.mirror": "hash" },
        ownerReferences: [owner],
      },
    );
    const created = await node.request("POST", pods, { body: mirror });
    assert.equal(created.code, 201, created.text);
    assert.equal(at(created.body, "spec.volumes"), undefined, "a mirror pod gets no token");
    const plain = podNamed("plain", { nodeName: "node1" });
    assert.match(
      textAt((await node.request("POST", pods, { body: plain })).body, "message"),
      /can only create mirror pods/,
    );
    const wrong = {
      ...mirror,
      metadata: { ...fieldsAt(mirror, "metadata"), name: "w", ownerReferences: [{ ...owner, uid: "0" }] },
    };
    assert.match(textAt((await node.request("POST", pods, { body: wrong })).body, "message"), /UID mismatch/);
    const path = `${pods}/${own}`;
    assert.equal((await node.request("DELETE", path, { body: { gracePeriodSeconds: 0 } })).code, 200);
    assert.equal((await node.request("DELETE", `${pods}/${foreign}`)).code, 403);
  });
  it("may delete its own resource slices, selected by their node", async () => {
    const slices = "/apis/resource.k8s.io/v1/resourceslices";
    for (const nodeName of ["node1", "node2"]) {
      const metadata = { name: `${nodeName}-${count}` };
      server.admin.create({ apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata, spec: { nodeName } });
    }
    for (const query of ["", "?fieldSelector=spec.nodeName%3Dnode2"]) {
      assert.equal((await node.request("DELETE", `${slices}${query}`)).code, 403, query);
    }
    const deleted = await node.request("DELETE", `${slices}?fieldSelector=spec.nodeName%3Dnode1`);
    assert.equal(deleted.code, 200, deleted.text);
    assert.equal(server.admin.find("resourceslices", `node1-${count}`), undefined);
    assert.notEqual(server.admin.find("resourceslices", `node2-${count}`), undefined);
    assert.equal((await node.request("DELETE", `${slices}/node2-${count}`)).code, 403);
  });
  it("may read the secrets and config maps that its pods refer to, one by one", async () => {
    for (const name of ["used", "unused"]) {
      server.admin.create({ apiVersion: "v1", kind: "Secret", metadata: { name: `${name}-${count}` } });
    }
    const volumes = [{ name: "s", secret: { secretName: `used-${count}` } }];
    server.admin.create(podNamed(`with-secret-${count}`, { nodeName: "node1", volumes }));
    const secrets = "/api/v1/namespaces/default/secrets";
    assert.equal((await node.get(`${secrets}/used-${count}`)).code, 200);
    assert.equal((await node.get(`${secrets}?fieldSelector=metadata.name%3Dused-${count}`)).code, 200);
    const refused = await node.get(`${secrets}/unused-${count}`);
    assert.match(textAt(refused.body, "message"), /no relationship found between node 'node1' and this object/);
    assert.equal((await node.get(secrets)).code, 403);
  });
  /** A token for the driver of a claim's volume. */
  async function askForClaimedVolume(): Promise<{ readonly code: number }> {
    const { admin } = server;
    const [name, driver] = [`claims-${count}`, "vault.example.org"];
    const spec = { tokenRequests: [{ audience: "vault" }] };
    const metadata = { name, namespace: "default" };
    admin.create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: driver }, spec });
    const csi = { driver, volumeHandle: name };
    admin.create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec: { csi } });
    admin.create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, spec: { volumeName: name } });
    const volumes = [{ name: "d", persistentVolumeClaim: { claimName: name } }];
    const { uid } = admin.create(podNamed(name, { nodeName: "node1", volumes })).metadata;
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid };
    const body = { spec: { audiences: ["vault"], expirationSeconds: 3600, boundObjectRef } };
    return await node.request("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", { body });
  }
  it("may request tokens for the accounts of its own pods, bound to them", async () => {
    const accounts = "/api/v1/namespaces/default/serviceaccounts/default/token";
    const uid = server.admin.get("pods", `default/${own}`).metadata.uid;
    const request = (name: string, podUid: string): Fields => ({
      spec: { expirationSeconds: 3600, boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid: podUid } },
    });
    const issued = await node.request("POST", accounts, { body: request(own, uid) });
    assert.equal(issued.code, 201, issued.text);
    const token = textAt(issued.body, "status.token");
    using admin = new TestClient(server);
    const review = (): Promise<{ code: number; body: Fields }> =>
      admin.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", { body: {}, token });
    assert.equal(textAt((await review()).body, "status.userInfo.username"), "system:serviceaccount:default:default");
    server.admin.delete("pods", `default/${own}`, { gracePeriodSeconds: 0 });
    assert.equal((await review()).code, 401, "a token ends with its pod");
    const elsewhere = server.admin.get("pods", `default/${foreign}`).metadata.uid;
    const keeper = server.admin.create(podNamed(`keeps-relation-${count}`, { nodeName: "node1" }));
    const others = { spec: { ...fieldsAt(request(keeper.metadata.name, keeper.metadata.uid), "spec") } };
    const strange = await node.request("POST", accounts, { body: { spec: { ...others.spec, audiences: ["vault"] } } });
    assert.equal(strange.code, 403, "no volume of the pod has a token for that audience");
    assert.equal((await askForClaimedVolume()).code, 201, "the driver of its claim's volume needs that audience");
    assert.equal((await node.request("POST", accounts, { body: request(foreign, elsewhere) })).code, 403);
    const gone = await node.request("POST", accounts, { body: request(own, uid) });
    assert.deepEqual([gone.code, gone.body["reason"]], [404, "NotFound"]);
    const short = { spec: { ...others.spec, expirationSeconds: 60 } };
    assert.equal((await node.request("POST", accounts, { body: short })).code, 422);
  });
});
