import assert from "node:assert/strict";
import { test } from "node:test";
import { containerHash } from "./hash.ts";

// Recorded from a Go kubelet 1.36.2 (annotation io.kubernetes.container.hash).
const recorded: ReadonlyArray<readonly [name: string, image: string, hash: string]> = [
  ["c", "docker.io/library/busybox", "30740e7"],
  ["c", "docker.io/library/busybox:latest", "8468e76c"],
  ["init-1", "docker.io/library/busybox:latest", "f9a0a946"],
  ["side", "docker.io/library/busybox:latest", "d27e232c"],
  ["two", "registry.k8s.io/e2e-test-images/busybox:1.37.0-1", "c37c2f41"],
  ["one", "docker.io/library/busybox:latest", "c37f3c0d"],
  ["web", "docker.io/library/busybox:latest", "90b33c84"],
];

test("the container hash is the one that a Go kubelet recorded", () => {
  for (const [name, image, hash] of recorded) assert.equal(containerHash({ name, image }), hash, name);
});

test("the container hash depends on name and image only", () => {
  const container = { name: "c", image: "busybox", command: ["sh"], env: [{ name: "A" }] };
  assert.equal(containerHash(container), containerHash({ name: "c", image: "busybox" }));
  assert.notEqual(containerHash(container), containerHash({ name: "c", image: "busybox:2" }));
});
