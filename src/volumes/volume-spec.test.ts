import assert from "node:assert/strict";
import { test } from "node:test";
import { keptOfClaim, keptOfVolume } from "./volume-spec.ts";

test("of a PersistentVolume its source and options are kept while it is used, not what was only checked", () => {
  const csi = { driver: "d", volumeHandle: "h", volumeAttributes: { tier: "fast" } };
  const used = { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOncePod"], mountOptions: ["noatime"], csi };
  const kept = keptOfVolume({
    metadata: { name: "pv", uid: "1", annotations: { "pv.kubernetes.io/provisioned-by": "d" } },
    spec: { ...used, claimRef: { uid: "2" }, storageClassName: "s", persistentVolumeReclaimPolicy: "Delete" },
    status: { phase: "Bound" },
  });
  assert.deepEqual(kept, { metadata: { name: "pv" }, spec: used });
});

test("the source of an unsupported driver is kept, because errors name it", () => {
  const iscsi = { targetPortal: "10.0.0.1" };
  assert.deepEqual(keptOfVolume({ metadata: { name: "pv" }, spec: { iscsi } }).spec, { iscsi });
});

test("of a claim its name and its size are kept", () => {
  const kept = keptOfClaim({
    metadata: { name: "c", namespace: "ns", uid: "2", finalizers: ["kubernetes.io/pvc-protection"] },
    spec: { volumeName: "pv", accessModes: ["ReadWriteOnce"] },
    status: { phase: "Bound", capacity: { storage: "1Gi" } },
  });
  assert.deepEqual(kept, {
    metadata: { name: "c", namespace: "ns", uid: "2" },
    spec: {},
    status: { capacity: { storage: "1Gi" } },
  });
});
