import assert from "node:assert/strict";
import { test } from "node:test";
import { vectorJson } from "../../test/support/vectors.ts";
import { wireDifferences } from "../../test/support/wire.ts";
import { podBytes } from "./pod-bytes.ts";

test("pods are encoded as by Kubernetes' own types", () => {
  const vectors = vectorJson<readonly { readonly pod: object; readonly bytes: string }[]>("pod-bytes.json");
  assert.ok(vectors.length >= 5);
  for (const { pod, bytes } of vectors) {
    assert.deepEqual(wireDifferences(podBytes(pod), Buffer.from(bytes, "base64")), []);
  }
});

test("a value of the wrong kind is an error that names its place", () => {
  const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", ports: [{ containerPort: "http" }] }] } };
  assert.throws(() => podBytes(pod), /^TypeError: spec: containers: ports: containerPort: is not an integer$/);
  assert.throws(() => podBytes({ spec: { containers: {} } }), /spec: containers: is not a list/);
});
