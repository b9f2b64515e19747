import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { apiPods } from "./api-pod.ts";
import { ApiSource } from "./api-source.ts";
import type { SourceState } from "./source.ts";

function object(
  name: string,
  more: { readonly metadata?: object; readonly spec?: object; readonly status?: object } = {},
) {
  return {
    metadata: { name, namespace: "ns", uid: `uid-${name}`, resourceVersion: "1", ...more.metadata },
    spec: { nodeName: "n", containers: [{ name: "c", image: "i" }], ...more.spec },
    ...(more.status && { status: more.status }),
  };
}

describe("a pod of the API server", () => {
  test("is read with defaults and its status, without who set which field", () => {
    const pod = apiPods.decode(object("a", { metadata: { managedFields: [{}] }, status: { phase: "Running" } }));
    assert.equal(pod.metadata.managedFields, undefined);
    assert.equal(pod.spec.restartPolicy, "Always");
    assert.equal(pod.status?.phase, "Running");
    assert.equal(pod.unsupported, "");
  });

  test("may have fields of a newer server, at any depth", () => {
    const containers = [{ name: "c", image: "i", newField: 1, securityContext: { newer: { x: [1] } } }];
    const pod = apiPods.decode(object("a", { metadata: { newest: true }, spec: { containers, another: {} } }));
    assert.deepEqual(pod.spec.containers[0]?.securityContext, {});
    assert.ok(!JSON.stringify(pod).includes("new"));
  });

  test("says what this version can't do with it; what only manifests can't have is well", () => {
    const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "p" } }];
    const metadata = { generateName: "a-", deletionTimestamp: "2026-11-20T14:02:00Z" };
    const pod = apiPods.decode(object("a", { metadata, spec: { volumes } }));
    assert.match(pod.unsupported, /^spec\.volumes\.0\.persistentVolumeClaim: not supported: podwright does not mount/);
  });

  test("that is none is an error that names the field and shows no value", () => {
    assert.throws(
      () => apiPods.decode(object("a", { spec: { containers: "s3cret" } })),
      (error: Error) => {
        assert.match(error.message, /^Pod: spec\.containers: expected a list/);
        return !error.message.includes("s3cret");
      },
    );
    assert.throws(() => apiPods.decode(object("")), /has no name, namespace or UID/);
  });
});

describe("ApiSource", () => {
  const mirror = { annotations: { "kubernetes.io/config.mirror": "h" } };

  class World {
    readonly delivered: SourceState[] = [];
    readonly told: string[] = [];
    readonly source = new ApiSource(
      { deliver: (state) => this.delivered.push(state) },
      {
        podSeen: ({ metadata }) => this.told.push(`seen ${metadata.name}`),
        podGone: ({ metadata }) => this.told.push(`gone ${metadata.name}`),
        podsKnown: () => this.told.push("known"),
      },
    );

    names(): string[] {
      return this.delivered.at(-1)?.pods.map(({ pod }) => pod.metadata.name) ?? [];
    }
  }
  const pod = (name: string, more?: Parameters<typeof object>[1]) => apiPods.decode(object(name, more));

  test("wants all pods but mirror pods, of which it tells", () => {
    const world = new World();
    world.source.replaced([pod("a"), pod("m", { metadata: mirror })]);
    assert.deepEqual(world.names(), ["a"]);
    assert.deepEqual(world.told, ["seen a", "seen m", "known"]);
    world.source.replaced([pod("b")]);
    assert.deepEqual(world.told.slice(3), ["gone a", "gone m", "seen b", "known"]);
    assert.deepEqual(world.names(), ["b"]);
  });

  test("a change of the status alone is told, and changes nothing that is wanted", () => {
    const world = new World();
    world.source.replaced([pod("a")]);
    world.source.changed("MODIFIED", pod("a", { metadata: { resourceVersion: "2" }, status: { phase: "Running" } }));
    assert.equal(world.delivered.length, 1);
    assert.deepEqual(world.told, ["seen a", "known", "seen a"]);
    world.source.changed("MODIFIED", pod("a", { metadata: { deletionTimestamp: "2026-11-20T14:02:00Z" } }));
    assert.equal(world.delivered.length, 2);
    world.source.changed("DELETED", pod("a"));
    assert.deepEqual(world.names(), []);
    assert.deepEqual(world.told.at(-1), "gone a");
  });
});
