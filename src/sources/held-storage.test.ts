import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeManifests } from "./decode.ts";
import { holdsStorage } from "./held-storage.ts";
import { prepareManifests } from "./prepare.ts";

const claim = `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`;

function holds(...documents: readonly string[]): boolean {
  const { objects, errors } = decodeManifests(new TextEncoder().encode(documents.join("\n---\n")), "a.yaml");
  const prepared = prepareManifests(objects);
  const storage = prepared.storage.map(({ manifest }) => manifest);
  return holdsStorage({ errors: [...errors, ...prepared.errors], storage });
}

test("any error in a volume, a class or a driver defers claims", () => {
  assert.equal(holds(claim), false);
  assert.ok(holds(claim, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {hostPth: {}}}"));
  assert.ok(holds(claim, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {}}"));
  assert.ok(holds(claim, "{apiVersion: v1, kind: PersistentVolum, metadata: {name: disk}}"));
  assert.ok(holds(claim, "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: PersistentVolume, spec: 1}]}"));
  assert.ok(holds(claim, "{apiVersion: v1, kind: PersistentVolumeList, items: 1}"));
  assert.ok(holds("{apiVersion: v1, kind: StorageClass, metadata: {name: fast}, provisioner: x}"));
});

test("an error in an unreadable document defers claims if there are any", () => {
  assert.ok(holds(claim, "{apiVersion: v1, kind: [}"));
  assert.equal(holds("{apiVersion: v1, kind: [}"), false);
});

test("an error in a pod, or in an unsupported object, defers nothing", () => {
  assert.equal(holds(claim, "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {}}"), false);
  assert.equal(holds(claim, "{apiVersion: v1, kind: Service, metadata: {name: web}}"), false);
});
