import assert from "node:assert/strict";
import { test } from "node:test";
import type { StorageManifest } from "../api/storage-manifest.ts";
import { keptText } from "./kept-text.ts";

const list = "podwright volumes";

function claim(name: string, namespace?: string): StorageManifest {
  return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace }, spec: {} };
}

const disk: StorageManifest = { apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "disk" }, spec: {} };
const driver: StorageManifest = {
  apiVersion: "storage.k8s.io/v1",
  kind: "CSIDriver",
  metadata: { name: "d.example" },
  spec: {},
};
const byHand: StorageManifest = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "disks" },
  provisioner: "kubernetes.io/no-provisioner",
};

test("a run without a pod names what it keeps, and says where it is listed", () => {
  assert.equal(
    keptText([claim("data"), claim("logs", "tools"), disk, driver], list),
    "kept: claim data, claim tools/logs, PersistentVolume disk, CSIDriver d.example; " +
      "'podwright volumes' lists claims and volumes",
  );
  const many = Array.from({ length: 7 }, (_each, index) => claim(`c${index}`));
  assert.match(keptText(many, list), /^kept: claim c0, .*claim c4 and 2 more; /u);
});

test("a driver or a class alone is not said to be a claim or a volume, which no command lists", () => {
  assert.equal(keptText([driver], list), "kept at least until the last pod is stopped: CSIDriver d.example");
  assert.equal(
    keptText([byHand, driver], list),
    "kept at least until the last pod is stopped: StorageClass disks, CSIDriver d.example",
  );
});
