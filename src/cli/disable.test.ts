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

test("the pods of removed manifests end, unless another manifest has them too", () => {
  assert.deepEqual([...endingPods(loaded(["web", "db"]), loaded(["db"]), [])], ["default/web"]);
});

test("a pod that a manifest brought before it became invalid ends with it", () => {
  const remembered = ["default/web", "default/db"];
  assert.deepEqual([...endingPods(loaded([], broken), loaded(["web"]), remembered)], ["default/db"]);
  assert.deepEqual([...endingPods(loaded([], broken), loaded([]), remembered)], remembered);
});

test("no pod ends that an invalid manifest which stays may have brought", () => {
  assert.deepEqual(
    [...endingPods(loaded(["web"]), loaded([], broken), ["default/web", "default/db"])],
    ["default/web"],
  );
});
