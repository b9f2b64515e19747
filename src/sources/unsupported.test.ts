import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodManifest, PodSpec } from "../api/pod.ts";
import { findUnsupported } from "./unsupported.ts";

const container = { name: "c", image: "i" };
const inContainer = (fields: object): Partial<PodSpec> => ({ containers: [{ ...container, ...fields }] });
const volume = (fields: object): Partial<PodSpec> => ({ volumes: [{ name: "v", ...fields }] });
const drivers = "does not mount volumes of this kind; use a CSI driver";
const vendors = "has no in-tree drivers of storage vendors; use CSI";
const needsCluster = "needs an API server for it (podwright kubelet --kubeconfig)";
const noClasses = "needs an API server for RuntimeClasses (podwright kubelet --kubeconfig)";
const notAsked = "does not request it from the API server yet";

/** A field, a manifest that has it, and why it is refused. */
const refused: readonly (readonly [string, Partial<PodSpec>, string])[] = [
  ["spec.volumes.0.iscsi", volume({ iscsi: {} }), drivers],
  ["spec.volumes.0.fc", volume({ fc: {} }), drivers],
  ["spec.volumes.0.flexVolume", volume({ flexVolume: {} }), drivers],
  ["spec.volumes.0.azureDisk", volume({ azureDisk: {} }), vendors],
  [
    "spec.volumes.0.gitRepo",
    volume({ gitRepo: { repository: "r" } }),
    "rejects gitRepo volumes, as Kubernetes does; clone in an init container",
  ],
  [
    "spec.volumes.0.projected.sources.0.serviceAccountToken",
    volume({ projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }),
    needsCluster,
  ],
  [
    "spec.volumes.0.projected.sources.0.clusterTrustBundle",
    volume({ projected: { sources: [{ clusterTrustBundle: { path: "t" } }] } }),
    notAsked,
  ],
  [
    "spec.containers.0.resources.claims.0",
    inContainer({ resources: { claims: [{ name: "gpu" }] } }),
    "does not allocate devices yet",
  ],
  [
    "spec.containers.0.resources.limits.example.org/gpu",
    inContainer({ resources: { limits: { "example.org/gpu": 1 } } }),
    "has no device plugins; in a cluster, extended resources can be added to the Node",
  ],
  ["spec.resourceClaims.0", { resourceClaims: [{ name: "gpu" }] }, "does not allocate devices yet"],
  ["spec.runtimeClassName", { runtimeClassName: "kata" }, noClasses],
  ["spec.overhead.cpu", { overhead: { cpu: "1m" } }, noClasses],
  ["spec.os.name", { os: { name: "windows" } }, "runs Linux containers"],
  ["spec.securityContext.windowsOptions", { securityContext: { windowsOptions: {} } }, "runs Linux containers"],
  [
    "spec.containers.0.securityContext.windowsOptions",
    inContainer({ securityContext: { windowsOptions: {} } }),
    "runs Linux containers",
  ],
];

const manifest = (spec: Partial<PodSpec>, metadata: PodManifest["metadata"] = {}): PodManifest => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata,
  spec: { containers: [container], ...spec },
});

for (const [field, spec, because] of refused) {
  test(`${field} is rejected`, () => {
    assert.deepEqual(findUnsupported(manifest(spec)), [
      {
        path: field.split(/\.(?!org)/u).map((part) => (/^\d+$/.test(part) ? Number(part) : part)),
        detail: `not supported: podwright ${because}`,
      },
    ]);
  });
}

test("volumes of removed plugins with CSI drivers are rejected only in manifests", () => {
  for (const source of ["awsElasticBlockStore", "azureDisk", "azureFile", "cinder", "gcePersistentDisk"]) {
    assert.deepEqual(findUnsupported(manifest(volume({ [source]: {} })), "api"), []);
    assert.equal(findUnsupported(manifest(volume({ [source]: {} }))).length, 1);
  }
  for (const source of ["cephfs", "flocker", "glusterfs", "photonPersistentDisk", "quobyte", "rbd", "scaleIO"]) {
    assert.equal(findUnsupported(manifest(volume({ [source]: {} })), "api").length, 1);
  }
});

test("a field that only the API server sets is rejected in a manifest", () => {
  const found = findUnsupported(manifest({}, { deletionTimestamp: "2026-11-20T14:00:00Z" }));
  assert.deepEqual(
    found.map(({ path, detail }) => `${path.join(".")}: ${detail}`),
    ["metadata.deletionTimestamp: not supported: podwright stops a pod when its manifest is removed; remove the field"],
  );
});

test("a manifest may request storage on the node's disk, and an API server's pod devices", () => {
  assert.deepEqual(
    findUnsupported(manifest(inContainer({ resources: { limits: { "ephemeral-storage": "1Gi" } } }))),
    [],
  );
  const device = manifest(inContainer({ resources: { requests: { "example.org/gpu": "1" } } }));
  assert.deepEqual(findUnsupported(device, "api"), []);
});
