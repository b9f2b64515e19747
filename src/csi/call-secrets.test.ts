import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec, noAttachment } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import { Emitter } from "../base/emitter.ts";
import type { VolumeSpec } from "../volumes/volume-spec.ts";

const tokensKey = "csi.storage.k8s.io/serviceAccount.tokens";
const tokens = '{"vault":{"token":"the token","expirationTimestamp":"2026-11-20T15:00:00Z"}}';
const { signal } = new AbortController();

/** A cluster with all Secrets, each of which names itself. */
function sceneWith(driverSpec: Partial<NonNullable<CsiScene["driverSpec"]>> = {}): CsiScene {
  const scene = new CsiScene();
  scene.driverSpec = { volumeLifecycleModes: ["Persistent"], ...driverSpec };
  scene.objects = {
    secret: async ({ namespace, name }) => new Map([["key", Buffer.from(`${namespace}/${name}`)]]),
    token: async (_pod, { audience }) => {
      assert.equal(audience, "vault");
      return { token: "the token", expirationTimestamp: "2026-11-20T15:00:00Z" };
    },
  };
  return scene;
}

function specWith(references: Partial<NonNullable<PersistentVolume["spec"]["csi"]>>): VolumeSpec {
  return csiSpec({ csi: { driver: "d", volumeHandle: "h", volumeAttributes: { of: "volume" }, ...references } });
}

/** What the calls with secrets had of them, by method. */
function secretsOf({ calls }: CsiScene): unknown[] {
  return calls.flatMap(({ method, request }) => ("secrets" in request ? [[method, request["secrets"]]] : []));
}

test("each call has the Secret of its own reference", async () => {
  const scene = sceneWith();
  await scene.begin();
  const nodeStageSecretRef = { namespace: "a", name: "stage" };
  const nodePublishSecretRef = { namespace: "b", name: "publish" };
  const nodeExpandSecretRef = { namespace: "c", name: "expand" };
  const spec = specWith({ nodeStageSecretRef, nodePublishSecretRef, nodeExpandSecretRef });
  const pod = podWith({ containers: [{ name: "app" }] });
  const prepared = await scene.setUp(pod, spec);
  assert.deepEqual(secretsOf(scene), [
    ["nodeStageVolume", { key: "a/stage" }],
    ["nodePublishVolume", { key: "b/publish" }],
  ]);
  grow(scene, spec);
  const upkeep = prepared.upkeeps?.find(({ name }) => name === "expansion");
  upkeep?.run(signal, noAttachment, new Emitter()).catch(assert.fail);
  await scene.clock.advance(0);
  assert.deepEqual(secretsOf(scene).slice(2), [["nodeExpandVolume", { key: "c/expand" }]]);
});

/** The volume has 2 GiB now, and its claim has 1 GiB. */
function grow({ storage }: CsiScene, { persistentVolume }: VolumeSpec): void {
  assert.ok(persistentVolume);
  const { metadata, spec } = persistentVolume;
  const grown = { ...spec, capacity: { storage: "2Gi" } };
  storage.volumes.set("pv", { metadata: { ...metadata, uid: "uid-pv", resourceVersion: "2" }, spec: grown });
  storage.claims.set("ns/c", {
    metadata: { name: "c", namespace: "ns", uid: "uid-c", resourceVersion: "1" },
    spec: { volumeName: "pv", resources: { requests: { storage: "2Gi" } } },
    status: {
      phase: "Bound",
      capacity: { storage: "1Gi" },
      allocatedResources: { storage: "2Gi" },
      allocatedResourceStatuses: { storage: "NodeResizePending" },
    },
  });
}

test("a driver gets the pod's tokens in the secrets if its object wants that, and otherwise in the volume's context", async () => {
  for (const serviceAccountTokenInSecrets of [true, false, undefined]) {
    const scene = sceneWith({ tokenRequests: [{ audience: "vault" }], serviceAccountTokenInSecrets });
    await scene.begin();
    const nodePublishSecretRef = { namespace: "b", name: "publish" };
    await scene.setUp(podWith({ containers: [{ name: "app" }] }), specWith({ nodePublishSecretRef }));
    const { request } = scene.calls.find(({ method }) => method === "nodePublishVolume") ?? assert.fail();
    const isSecret = serviceAccountTokenInSecrets === true;
    const given = { [tokensKey]: tokens };
    assert.deepEqual(
      [request["secrets"], request["volumeContext"]],
      [
        { key: "b/publish", ...(isSecret && given) },
        { of: "volume", ...(!isSecret && given) },
      ],
    );
    const stage = scene.calls.find(({ method }) => method === "nodeStageVolume")?.request;
    assert.deepEqual([stage?.["secrets"], stage?.["volumeContext"]], [{}, { of: "volume" }]);
  }
});
