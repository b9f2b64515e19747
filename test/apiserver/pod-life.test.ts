import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { at, fieldsAt, type Fields, itemsAt, listAt, textAt } from "./objects.ts";
import { TestApiServer } from "./server.ts";
import { nodeNamed, podNamed, TestClient } from "./testing.ts";

const pods = "/api/v1/namespaces/default/pods";
const strategic = "application/strategic-merge-patch+json";

describe("the lifecycle of a pod", () => {
  let server: TestApiServer;
  let client: TestClient;
  before(async () => {
    server = await TestApiServer.start();
    server.admin.create(nodeNamed("node1", { ready: true }));
    client = new TestClient(server, server.credentials("admin", ["system:masters"]));
  });
  after(async () => {
    client[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });
  /** Creates a pod and waits until it is bound. */
  async function scheduled(name: string, spec: Fields = {}, metadata: Fields = {}): Promise<Fields> {
    server.admin.create(podNamed(name, spec, metadata));
    const pod = await server.admin.until("pods", `default/${name}`, (each) => textAt(each, "spec.nodeName") !== "");
    return pod ?? {};
  }

  it("begins with defaults, an account with its token, and a QoS class", () => {
    const resources = { limits: { cpu: "1", memory: "1Gi" } };
    const containers = [{ name: "app", image: "demo", resources, readinessProbe: { httpGet: { port: 80 } } }];
    const pod = server.admin.create(podNamed("complete", { containers, volumes: [{ name: "v" }], nodeName: "none" }));
    const [app] = itemsAt(pod, "spec.containers");
    assert.equal(app?.["imagePullPolicy"], "Always");
    assert.deepEqual(at(app, "resources.requests"), resources.limits);
    assert.deepEqual(at(app, "readinessProbe"), {
      httpGet: { port: 80, path: "/", scheme: "HTTP" },
      timeoutSeconds: 1,
      periodSeconds: 10,
      successThreshold: 1,
      failureThreshold: 3,
    });
    assert.equal(textAt(pod, "status.qosClass"), "Guaranteed");
    assert.equal(textAt(pod, "spec.serviceAccountName"), "default");
    assert.deepEqual(itemsAt(pod, "spec.volumes")[0], { name: "v", emptyDir: {} });
    assert.equal(itemsAt(pod, "spec.tolerations").length, 2);
    assert.throws(() => server.admin.create(podNamed("x", { serviceAccountName: "nobody" })), { code: 403 });
    assert.throws(() => server.admin.create(podNamed("x", { containers: [] })), /spec\.containers: Required value/);
  });
  it("is rejected with the invalid fields", () => {
    const mount = (name: string): Fields => ({ name, mountPath: `/${name}` });
    const container = (name: string, ...mounts: string[]): Fields => ({
      name,
      image: "a:1",
      volumeMounts: mounts.map(mount),
    });
    const spec = {
      volumes: [{ name: "there" }],
      initContainers: [container("init", "gone")],
      containers: [container("app", "there", "missing")],
    };
    const refusal = (given: Fields): string => {
      try {
        server.admin.create(podNamed("x", given));
        return "";
      } catch (error) {
        return error instanceof Error ? error.message : "";
      }
    };
    assert.match(refusal(spec), /spec\.initContainers\[0\]\.volumeMounts\[0\]\.name: Not found: "gone"/);
    assert.match(refusal(spec), /spec\.containers\[0\]\.volumeMounts\[1\]\.name: Not found: "missing"/);
    assert.match(
      refusal({ restartPolicy: "Sometimes" }),
      /spec\.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"/,
    );
  });
  it("permits few changes, and gets removed default tolerations back", async () => {
    await scheduled("steady", { tolerations: [{ key: "own", operator: "Exists" }] });
    const patch = async (spec: Fields): Promise<string> => {
      const answer = await client.request("PATCH", `${pods}/steady`, { contentType: strategic, body: { spec } });
      return answer.code === 200 ? "" : textAt(answer.body, "message");
    };
    assert.match(await patch({ terminationGracePeriodSeconds: 5 }), /pod updates may not change fields other than/);
    assert.match(await patch({ tolerations: null }), /existing toleration can not be modified/);
    assert.equal(await patch({ tolerations: [{ key: "own", operator: "Exists" }, { key: "more" }] }), "");
    assert.equal(itemsAt(server.admin.get("pods", "default/steady"), "spec.tolerations").length, 4);
    assert.equal(await patch({ activeDeadlineSeconds: 100 }), "");
    assert.match(await patch({ activeDeadlineSeconds: 200 }), /must be less than or equal to previous value/);
  });
  it("is not evicted while it runs if two budgets select it", async () => {
    for (const name of ["one", "two"]) {
      const budget = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name } };
      server.admin.create({ ...budget, spec: { selector: { matchLabels: { app: "twice" } } } });
      const status = { disruptionsAllowed: 1 };
      server.admin.patch("poddisruptionbudgets", `default/${name}`, { status }, { subresource: "status" });
    }
    await scheduled("twice", {}, { labels: { app: "twice" } });
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "twice" } };
    server.admin.patch("pods", "default/twice", { status: { phase: "Running" } }, { subresource: "status" });
    const refused = await client.request("POST", `${pods}/twice/eviction`, { body: eviction });
    assert.equal(refused.code, 500);
    assert.match(textAt(refused.body, "message"), /^This pod has more than one PodDisruptionBudget/);
    const allowed = server.admin.list("poddisruptionbudgets").map((each) => at(each, "status.disruptionsAllowed"));
    assert.deepEqual(allowed, [1, 1]);
    server.admin.patch("pods", "default/twice", { status: { phase: "Pending" } }, { subresource: "status" });
    const granted = await client.request("POST", `${pods}/twice/eviction`, { body: eviction });
    assert.equal(granted.code, 201, "what has not begun to run disrupts nobody");
  });
  it("waits for a node that is ready, selected and tolerated", async () => {
    server.admin.create(podNamed("picky", { nodeSelector: { disk: "ssd" } }));
    const waiting = await server.admin.until(
      "pods",
      "default/picky",
      (pod) => itemsAt(pod, "status.conditions").length > 0,
    );
    assert.equal(itemsAt(waiting, "status.conditions")[0]?.["reason"], "Unschedulable");
    server.admin.patch("nodes", "node1", {
      metadata: { labels: { disk: "ssd" } },
      spec: { taints: [{ key: "t", effect: "NoSchedule" }] },
    });
    await new Promise((done) => setTimeout(done, 20));
    assert.equal(textAt(server.admin.get("pods", "default/picky"), "spec.nodeName"), "");
    server.admin.patch("nodes", "node1", { spec: { taints: null } });
    const bound = await server.admin.until("pods", "default/picky", (pod) => textAt(pod, "spec.nodeName") === "node1");
    assert.equal(itemsAt(bound, "status.conditions")[0]?.["status"], "True");
  });
  it("ends gracefully: is marked, shortened, and removed when its node confirms the UID", async () => {
    const pod = await scheduled("graceful");
    const path = `${pods}/graceful`;
    const marked = await client.request("DELETE", path);
    assert.equal(at(marked.body, "metadata.deletionGracePeriodSeconds"), 30);
    assert.equal(at(marked.body, "metadata.generation"), Number(at(pod, "metadata.generation")) + 1);
    const longer = await client.request("DELETE", path, { body: { gracePeriodSeconds: 90 } });
    assert.equal(at(longer.body, "metadata.deletionGracePeriodSeconds"), 30, "grace never grows");
    const shorter = await client.request("DELETE", `${path}?gracePeriodSeconds=5`);
    assert.equal(at(shorter.body, "metadata.deletionGracePeriodSeconds"), 5);
    const earlier = Date.parse(textAt(marked.body, "metadata.deletionTimestamp"));
    assert.equal(earlier - Date.parse(textAt(shorter.body, "metadata.deletionTimestamp")), 25_000);
    const confirm = (uid: string): Fields => ({ gracePeriodSeconds: 0, preconditions: { uid } });
    const wrong = await client.request("DELETE", path, { body: confirm("another") });
    assert.equal(wrong.code, 409);
    assert.match(
      textAt(wrong.body, "message"),
      /the UID in the precondition \(another\) does not match the UID in record/,
    );
    assert.equal((await client.request("DELETE", path, { body: confirm(textAt(pod, "metadata.uid")) })).code, 200);
    assert.equal((await client.get(path)).code, 404);
  });
  it("is removed at once if it is unbound or has ended", async () => {
    server.admin.create(podNamed("nowhere", { schedulerName: "none" }));
    await client.request("DELETE", `${pods}/nowhere`);
    assert.equal((await client.get(`${pods}/nowhere`)).code, 404);
    await scheduled("done");
    server.admin.patch("pods", "default/done", { status: { phase: "Succeeded" } }, { subresource: "status" });
    await client.request("DELETE", `${pods}/done`);
    assert.equal((await client.get(`${pods}/done`)).code, 404);
  });
  it("is kept by its finalizers", async () => {
    await scheduled("held", {}, { finalizers: ["example.com/hold"] });
    await client.request("DELETE", `${pods}/held`, { body: { gracePeriodSeconds: 0 } });
    assert.equal(at(server.admin.get("pods", "default/held"), "metadata.deletionGracePeriodSeconds"), 0);
    server.admin.patch("pods", "default/held", {
      metadata: { "$deleteFromPrimitiveList/finalizers": ["example.com/hold"] },
    });
    assert.equal(server.admin.find("pods", "default/held"), undefined);
  });
  it("changes status and spec only through their own endpoints", async () => {
    await scheduled("parts");
    const patch = async (path: string, body: Fields): Promise<{ code: number; body: Fields }> =>
      client.request("PATCH", `${pods}/parts${path}`, { contentType: strategic, body });
    const both = { spec: { activeDeadlineSeconds: 9 }, status: { phase: "Running", qosClass: "Guaranteed" } };
    const status = (await patch("/status", both)).body;
    assert.deepEqual([at(status, "spec.activeDeadlineSeconds"), at(status, "status.phase")], [undefined, "Running"]);
    assert.equal(at(status, "status.qosClass"), "BestEffort");
    const whole = (await patch("", { ...both, status: { phase: "Failed" } })).body;
    assert.deepEqual([at(whole, "spec.activeDeadlineSeconds"), at(whole, "status.phase")], [9, "Running"]);
    const refused = await patch("", { spec: { hostname: "x" } });
    assert.equal(refused.code, 422);
    assert.match(textAt(refused.body, "message"), /pod updates may not change fields other than/);
    const wrongUid = await patch("/status", { metadata: { uid: "another" }, status: {} });
    assert.deepEqual([wrongUid.code, itemsAt(wrongUid.body, "details.causes")[0]?.["field"]], [422, "metadata.uid"]);
  });
  it("gets ephemeral containers and new resources only through subresources", async () => {
    await scheduled("grown");
    const patch = async (subresource: string, body: Fields): Promise<Fields> =>
      (await client.request("PATCH", `${pods}/grown/${subresource}`, { contentType: strategic, body })).body;
    const debug = await patch("ephemeralcontainers", {
      spec: { ephemeralContainers: [{ name: "debug", image: "sh:1" }] },
    });
    assert.deepEqual(
      itemsAt(debug, "spec.ephemeralContainers").map(({ name }) => name),
      ["debug"],
    );
    const resources = { requests: { cpu: "200m" } };
    const other = await patch("resize", { spec: { containers: [{ name: "app", resources }] } });
    assert.match(textAt(other, "message"), /QOS Class may not change/);
    await client.request("DELETE", `${pods}/grown?gracePeriodSeconds=0`);
    await scheduled("grown", { containers: [{ name: "app", image: "a:1", resources: { requests: { cpu: "100m" } } }] });
    const resized = await patch("resize", { spec: { hostname: "no", containers: [{ name: "app", resources }] } });
    assert.deepEqual(itemsAt(resized, "spec.containers")[0]?.["resources"], resources);
    assert.equal(at(resized, "spec.hostname"), undefined);
    assert.equal(at(resized, "metadata.generation"), 2);
  });
  it("stays unchanged in a dry run", async () => {
    assert.equal((await client.request("POST", `${pods}?dryRun=All`, { body: podNamed("imagined") })).code, 201);
    assert.equal((await client.get(`${pods}/imagined`)).code, 404);
  });
  it("allows its namespace to be removed at once", async () => {
    server.admin.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "brief" } });
    server.admin.delete("namespaces", "brief");
    await server.admin.until("namespaces", "brief", (found) => found === undefined);
  });
  it("is removed with its owner, and with its namespace", async () => {
    const owner = server.admin.create(nodeNamed("node2"));
    const { uid } = owner.metadata;
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "node2", uid, controller: true }];
    server.admin.create(podNamed("mirror", { schedulerName: "none" }, { ownerReferences }));
    server.admin.delete("nodes", "node2");
    await server.admin.until("pods", "default/mirror", (pod) => pod === undefined);

    server.admin.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "short" } });
    await server.admin.until("serviceaccounts", "short/default", (found) => found !== undefined);
    server.admin.create(podNamed("p", { nodeName: "node1" }, { namespace: "short" }));
    server.admin.delete("namespaces", "short");
    const going = await server.admin.until(
      "pods",
      "short/p",
      (pod) => at(pod, "metadata.deletionTimestamp") !== undefined,
    );
    assert.equal(textAt(server.admin.get("namespaces", "short"), "status.phase"), "Terminating");
    assert.ok(going);
    assert.throws(
      () => server.admin.create(podNamed("q", {}, { namespace: "short" })),
      /because it is being terminated/,
    );
    server.admin.delete("pods", "short/p", { gracePeriodSeconds: 0 });
    await server.admin.until("namespaces", "short", (found) => found === undefined);
    assert.deepEqual(listAt(fieldsAt(going, "metadata"), "finalizers"), []);
  });
});
