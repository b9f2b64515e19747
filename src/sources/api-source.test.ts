import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podUid } from "../base/ids.ts";
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
  test("is read with defaults and its status, without managedFields", () => {
    const pod = apiPods.decode(object("a", { metadata: { managedFields: [{}] }, status: { phase: "Running" } }));
    assert.equal(pod.metadata.managedFields, undefined);
    assert.equal(pod.spec.restartPolicy, "Always");
    assert.equal(pod.status?.phase, "Running");
    assert.equal(pod.unsupported, "");
  });

  test("may have fields of a newer server, at any depth", () => {
    const containers = [{ name: "c", image: "i", newField: 1, securityContext: { newer: { x: [1] } } }];
    const { definition: _sent, ...pod } = apiPods.decode(
      object("a", { metadata: { newest: true }, spec: { containers, another: {} } }),
    );
    assert.deepEqual(pod.spec.containers[0]?.securityContext, {});
    assert.ok(!JSON.stringify(pod).includes("new"));
  });

  test("reports what this version cannot do; restrictions of manifests do not apply", () => {
    const volumes = [
      { name: "c", persistentVolumeClaim: { claimName: "p" } },
      { name: "v", iscsi: { targetPortal: "s" } },
    ];
    const metadata = { generateName: "a-", deletionTimestamp: "2026-11-20T14:02:00Z" };
    const pod = apiPods.decode(object("a", { metadata, spec: { volumes } }));
    assert.match(pod.unsupported, /^spec\.volumes\.1\.iscsi: not supported: podwright does not mount/);
  });

  test("may have what Go's types accept: null as unset, and extreme numbers", () => {
    const most = 9_223_372_036_854_775_807n;
    const text = JSON.stringify(
      object("a", {
        metadata: { deletionGracePeriodSeconds: "most", labels: null },
        spec: {
          terminationGracePeriodSeconds: "most",
          tolerations: [{ operator: "Exists", effect: "NoExecute", tolerationSeconds: "most" }],
          volumes: [{ name: "v", projected: { sources: null } }],
        },
      }),
    ).replaceAll('"most"', String(most));
    const pod = apiPods.decode(JSON.parse(text));
    assert.equal(pod.unsupported, "");
    assert.equal(pod.spec.terminationGracePeriodSeconds, Number.MAX_SAFE_INTEGER);
    assert.equal(pod.spec.tolerations?.[0]?.tolerationSeconds, Number.MAX_SAFE_INTEGER);
    assert.equal(pod.metadata.deletionGracePeriodSeconds, Number.MAX_SAFE_INTEGER);
    assert.deepEqual(pod.spec.volumes, [{ name: "v", projected: { defaultMode: 420 } }]);
  });

  test("with an unreadable field reports it without its value, and is read without it", () => {
    const containers = [{ name: "c", image: "i", imagePullPolicy: "Sometimes", stdin: "s3cret" }];
    const pod = apiPods.decode(object("a", { spec: { containers, restartPolicy: "Sometimes" } }));
    assert.equal(pod.spec.restartPolicy, "Always");
    assert.equal(pod.isPartial, true);
    assert.match(
      pod.unsupported,
      /^spec\.containers\.0\.imagePullPolicy: .*; spec\.containers\.0\.stdin: .*; spec\.restartPolicy: /,
    );
    assert.doesNotMatch(pod.unsupported, /s3cret/);
  });

  test("that is invalid is an error that names the field and shows no value", () => {
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
      {
        deliver: (state) => this.delivered.push(state),
        change: ({ left, came, complete }) => {
          const pods = (this.delivered.at(-1)?.pods ?? []).filter((each) => each !== left);
          this.delivered.push({ pods: came === undefined ? pods : [...pods, came], complete });
        },
      },
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

  test("wants all pods but mirror pods, which it reports", () => {
    const world = new World();
    world.source.replaced([pod("a"), pod("m", { metadata: mirror })], []);
    assert.deepEqual(world.names(), ["a"]);
    assert.deepEqual(world.told, ["seen a", "seen m", "known"]);
    world.source.replaced([pod("b")], []);
    assert.deepEqual(world.told.slice(3), ["gone a", "gone m", "seen b", "known"]);
    assert.deepEqual(world.names(), ["b"]);
  });

  test("does not treat unreadable pods as orphaned", () => {
    const world = new World();
    const complete = (): boolean | undefined => world.delivered.at(-1)?.complete;
    world.source.replaced([pod("a")], [podUid("uid-b"), podUid("uid-c")]);
    assert.equal(complete(), false);
    world.source.changed("ADDED", pod("b"));
    assert.equal(complete(), false);
    world.source.unreadGone(podUid("uid-c"));
    assert.equal(complete(), true);
    world.source.replaced([pod("a")], [podUid("uid-b")]);
    assert.equal(complete(), false);
    world.source.replaced([pod("a")], []);
    assert.equal(complete(), true);
  });

  test("keeps the last version of a pod that is now only partly readable", () => {
    const world = new World();
    const image = (): string | undefined => world.delivered.at(-1)?.pods[0]?.pod.spec.containers[0]?.image;
    world.source.replaced([pod("a")], []);
    const containers = [{ name: "c", image: "other", securityContext: { runAsUser: "root" } }];
    const metadata = { deletionTimestamp: "2026-11-20T14:02:00Z" };
    world.source.changed("MODIFIED", pod("a", { metadata, spec: { containers } }));
    assert.equal(image(), "i");
    assert.ok(world.delivered.at(-1)?.pods[0]?.pod.metadata.deletionTimestamp);
  });

  test("reports a change of the status alone, which changes no desired pod", () => {
    const world = new World();
    world.source.replaced([pod("a")], []);
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
