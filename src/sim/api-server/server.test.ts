import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeRequest } from "../../ports/kube-api.ts";
import { SimClock } from "../clock.ts";
import { parseRequest } from "./request.ts";
import { SimApiServer } from "./server.ts";

const pods = "/api/v1/namespaces/default/pods";
const { signal } = new AbortController();

class World {
  readonly clock = new SimClock(1_700_000_000_000);
  readonly server: SimApiServer;

  constructor(settings: { readonly pageSize?: number; readonly streamsLists?: boolean } = {}) {
    this.server = new SimApiServer({ clock: this.clock, skewMs: 0, streamsLists: true, pageSize: 500, ...settings });
  }

  ask(method: KubeRequest["method"], path: string, body?: object, type = "application/json") {
    const headers = { "content-type": type };
    const { code, body: text } = this.server.serve({
      ...{ lane: "objects", method, path, headers, signal },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { code, value: JSON.parse(text) as Answer };
  }

  create(name: string, spec: object = {}): Answer {
    const { code, value } = this.ask("POST", pods, { metadata: { name }, spec: { nodeName: "sim", ...spec } });
    assert.equal(code, 201);
    return value;
  }

  /** Types and names of a watch's events. */
  watch(query: string): string[] {
    const told: string[] = [];
    const call = parseRequest({ method: "GET", path: `/api/v1/pods?watch=true&allowWatchBookmarks=true&${query}` });
    this.server.watch(call, {
      line: (text) => {
        const { type, object } = JSON.parse(text) as { type: string; object: Answer };
        told.push(`${type} ${object.metadata.name ?? ""}`.trim());
      },
      end: () => void told.push("end"),
    });
    return told;
  }
}

interface Answer {
  readonly reason?: string;
  readonly items?: readonly Answer[];
  readonly metadata: {
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion: string;
    readonly continue?: string;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
  };
  readonly status?: { readonly phase?: string; readonly conditions?: readonly { readonly type: string }[] };
}

describe("the simulated API server", () => {
  test("pages of a list show one version, whatever changes meanwhile", () => {
    const world = new World({ pageSize: 2 });
    for (const name of ["a", "b", "c"]) world.create(name);
    const first = world.ask("GET", `${pods}?limit=500`).value;
    world.create("d");
    const next = encodeURIComponent(first.metadata.continue ?? "");
    const second = world.ask("GET", `${pods}?limit=500&continue=${next}`).value;
    assert.deepEqual(
      [first, second].map(({ items }) => items?.map(({ metadata }) => metadata.name)),
      [["a", "b"], ["c"]],
    );
    assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
    assert.equal(second.metadata.continue, undefined);
    world.server.registry.store.compact();
    assert.equal(world.ask("GET", `${pods}?limit=500&continue=${next}`).code, 410);
  });

  test("watches continue from a version, begin with all objects, send bookmarks and end", async () => {
    const world = new World();
    const { metadata } = world.create("a");
    world.create("b");
    const resumed = world.watch(`resourceVersion=${metadata.resourceVersion}&timeoutSeconds=90`);
    const whole = world.watch("sendInitialEvents=true&fieldSelector=metadata.name%3Da");
    world.ask("DELETE", `${pods}/b`, { gracePeriodSeconds: 0 });
    await world.clock.run(95_000);
    assert.deepEqual(resumed, ["ADDED b", "MODIFIED b", "DELETED b", "BOOKMARK", "BOOKMARK", "end"]);
    assert.deepEqual(whole, ["ADDED a", "BOOKMARK", "BOOKMARK"]);
    world.server.registry.store.compact();
    assert.throws(() => world.watch(`resourceVersion=${metadata.resourceVersion}`), /too old resource version/);
  });

  test("a server without streaming lists rejects them", () => {
    assert.throws(() => new World({ streamsLists: false }).watch("sendInitialEvents=true"), /sendInitialEvents/);
  });

  test("a pod is removed when its kubelet confirms, its grace period can only be shortened, and its successor is safe", () => {
    const world = new World();
    const { uid } = world.create("a", { terminationGracePeriodSeconds: 30 }).metadata;
    const path = `${pods}/a`;
    assert.equal(world.ask("DELETE", path, {}).value.metadata.deletionGracePeriodSeconds, 30);
    assert.equal(world.ask("DELETE", path, { gracePeriodSeconds: 40 }).value.metadata.deletionGracePeriodSeconds, 30);
    const hurried = world.ask("DELETE", path, { gracePeriodSeconds: 5 }).value.metadata;
    assert.deepEqual([hurried.deletionGracePeriodSeconds, hurried.deletionTimestamp], [5, "2023-11-14T22:13:25Z"]);
    const wrong = { gracePeriodSeconds: 0, preconditions: { uid: "another" } };
    assert.equal(world.ask("DELETE", path, wrong).value.reason, "Conflict");
    assert.equal(world.ask("DELETE", path, { gracePeriodSeconds: 0, preconditions: { uid } }).code, 200);
    assert.equal(world.ask("GET", path).code, 404);
  });

  test("statuses are merged by key, only for the pod with that UID, and no terminated container returns", () => {
    const world = new World();
    const { uid } = world.create("a", { restartPolicy: "Never", containers: [{ name: "c" }] }).metadata;
    const patch = (status: object, of = uid) =>
      world.ask(
        "PATCH",
        `${pods}/a/status`,
        { metadata: { uid: of }, status },
        "application/strategic-merge-patch+json",
      );
    const conditions = [{ type: "Ready", status: "True" }];
    const merged = patch({ $setElementOrder: [], conditions, phase: "Running" }).value.status;
    assert.deepEqual(
      [merged?.phase, merged?.conditions?.map(({ type }) => type)],
      ["Running", ["PodScheduled", "Ready"]],
    );
    const removed = patch({ conditions: [{ $patch: "delete", type: "Ready" }] }).value.status;
    assert.deepEqual(
      removed?.conditions?.map(({ type }) => type),
      ["PodScheduled"],
    );
    assert.equal(patch({ phase: "Failed" }, "another").code, 422);
    assert.equal(patch({ containerStatuses: [{ name: "c", state: { terminated: { exitCode: 0 } } }] }).code, 200);
    assert.equal(patch({ containerStatuses: [{ name: "c", state: { running: {} } }] }).code, 422);
  });

  test("a replacement of an old version is rejected", () => {
    const world = new World();
    const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    const created = world.ask("POST", leases, { metadata: { name: "n" }, spec: {} }).value;
    const lease = { ...created, spec: { holderIdentity: "n" } };
    assert.equal(world.ask("PUT", `${leases}/n`, lease).code, 200);
    assert.equal(world.ask("PUT", `${leases}/n`, lease).value.reason, "Conflict");
    assert.equal(world.ask("POST", leases, { metadata: { name: "n" } }).value.reason, "AlreadyExists");
  });
});
