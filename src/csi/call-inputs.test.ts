import assert from "node:assert/strict";
import { test } from "node:test";
import { callSecrets } from "./call-inputs.ts";
import { localCallObjects } from "./call-objects.ts";

test("a driver gets all texts of a secret, whatever their keys", async () => {
  const data = new Map(["key", "__proto__", "constructor"].map((key) => [key, Buffer.from(`of ${key}`)]));
  const objects = localCallObjects({ secret: () => ({ uid: "", type: "Opaque", data }) });
  const place = { namespace: "ns", name: "s" };
  const texts = await callSecrets(objects, "NodeStageSecretRef", place, new AbortController().signal);
  assert.deepEqual(Object.entries(texts), [
    ["key", "of key"],
    ["__proto__", "of __proto__"],
    ["constructor", "of constructor"],
  ]);
});
