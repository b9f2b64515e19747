import assert from "node:assert/strict";
import { test } from "node:test";
import { ManifestError } from "../yaml/manifest-error.ts";
import { endingPods } from "./disable.ts";

const loaded = (names: readonly string[], errors: readonly ManifestError[] = []): Parameters<typeof endingPods>[1] => ({
  request: {
    pods: names.map((name) => ({ kind: "Pod", apiVersion: "v1", metadata: { name }, spec: { containers: [] } })),
    configMaps: [],
    secrets: [],
  },
  errors,
});
const broken = [new ManifestError({ file: "db.yaml" }, "is bad")];

test("pods of removed manifests are stopped, unless another manifest also has them", () => {
  assert.deepEqual([...endingPods(loaded(["web", "db"]), loaded(["db"]), [])], ["default/web"]);
});

test("a pod is stopped with its manifest that has become invalid", () => {
  const remembered = ["default/web", "default/db"];
  assert.deepEqual([...endingPods(loaded([], broken), loaded(["web"]), remembered)], ["default/db"]);
  assert.deepEqual([...endingPods(loaded([], broken), loaded([]), remembered)], remembered);
});

test("a pod that may belong to a remaining invalid manifest is not stopped", () => {
  assert.deepEqual(
    [...endingPods(loaded(["web"]), loaded([], broken), ["default/web", "default/db"])],
    ["default/web"],
  );
});
