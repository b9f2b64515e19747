import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { formatPath } from "../yaml/manifest-error.ts";
import { validateVolumes } from "./validate-volumes.ts";

function problemsOf(source: Omit<Volume, "name">): string[] {
  const spec: PodSpec = { containers: [], volumes: [{ name: "v", ...source }] };
  return [...validateVolumes(spec, ["volumes"])].map(({ path, detail }) => `${formatPath(path)}: ${detail}`);
}

test("an emptyDir has a known medium and a valid size", () => {
  assert.deepEqual(problemsOf({ emptyDir: { medium: "Memory", sizeLimit: "64Mi" } }), []);
  assert.deepEqual(problemsOf({ emptyDir: { medium: "HugePages-2Mi" } }), []);
  assert.deepEqual(problemsOf({ emptyDir: { medium: "Disk" } }), [
    'volumes[0].emptyDir.medium: Unsupported value: "Disk": supported values: "", "Memory", "HugePages", "HugePages-<size>"',
  ]);
  assert.match(problemsOf({ emptyDir: { sizeLimit: "-1" } })[0] ?? "", /sizeLimit: Invalid value/);
  assert.match(problemsOf({ emptyDir: { sizeLimit: "much" } })[0] ?? "", /sizeLimit: Invalid value/);
});

test("a hostPath is absolute, without `..`, and has a known type", () => {
  assert.deepEqual(problemsOf({ hostPath: { path: "/var/log", type: "DirectoryOrCreate" } }), []);
  assert.match(problemsOf({ hostPath: { path: "" } })[0] ?? "", /path: Required/);
  assert.match(problemsOf({ hostPath: { path: "/a/../b" } })[0] ?? "", /must not contain '\.\.'/);
  assert.match(problemsOf({ hostPath: { path: "a" } })[0] ?? "", /must be an absolute path/);
  assert.match(problemsOf({ hostPath: { path: "/a", type: "Fifo" } })[0] ?? "", /type: Unsupported value/);
});

test("files of objects have names, keys, paths in the volume and permissions", () => {
  assert.match(problemsOf({ configMap: {} })[0] ?? "", /configMap\.name: Required/);
  assert.match(problemsOf({ secret: {} })[0] ?? "", /secret\.secretName: Required/);
  const items = [
    { key: "", path: "../a", mode: 0o1000 },
    { key: "k", path: "..b" },
    { key: "k", path: "" },
    { key: "k", path: "c" },
    { key: "l", path: "c" },
  ];
  const at = (index: number, field: string): string => `volumes[0].configMap.items[${index}].${field}`;
  assert.deepEqual(problemsOf({ configMap: { name: "c", defaultMode: -1, items } }), [
    "volumes[0].configMap.defaultMode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive",
    `${at(0, "key")}: Required value`,
    `${at(0, "path")}: Invalid value: "../a": must not contain '..'`,
    `${at(0, "mode")}: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive`,
    `${at(1, "path")}: Invalid value: "..b": must not start with '..'`,
    `${at(2, "path")}: Required value`,
  ]);
});

test("a downward API file shows one of the fields available to volumes", () => {
  const item = (change: object): string[] => problemsOf({ downwardAPI: { items: [{ path: "f", ...change }] } });
  assert.deepEqual(item({ fieldRef: { fieldPath: "metadata.labels['a/b']" } }), []);
  assert.deepEqual(item({ resourceFieldRef: { containerName: "c", resource: "limits.cpu" } }), []);
  assert.match(item({ fieldRef: { fieldPath: "status.podIP" } })[0] ?? "", /fieldPath: Unsupported value/);
  assert.match(item({})[0] ?? "", /one of fieldRef and resourceFieldRef is required/);
  assert.match(item({ resourceFieldRef: { resource: "limits.cpu" } })[0] ?? "", /containerName: Required/);
  assert.match(
    item({ fieldRef: { fieldPath: "metadata.name" }, resourceFieldRef: { resource: "limits.cpu" } })[0] ?? "",
    /can not be specified simultaneously/,
  );
});

test("the sources of a projected volume have one type each and no common file", () => {
  const items = [{ key: "k", path: "f" }];
  const found = problemsOf({
    projected: {
      sources: [{ configMap: { name: "c", items }, secret: { name: "s" } }, { secret: { items } }],
    },
  });
  assert.deepEqual(found, [
    "volumes[0].projected.sources[0].secret: Forbidden: may not specify more than 1 volume type per source",
    "volumes[0].projected.sources[1].secret.name: Required value",
    'volumes[0].projected.sources[1].secret.items[0].path: Invalid value: "f": conflicting duplicate paths',
  ]);
});

test("an image volume has a reference and a known pull policy", () => {
  assert.deepEqual(problemsOf({ image: { reference: "models:1" } }), []);
  assert.deepEqual(problemsOf({ image: { reference: "models:1", pullPolicy: "Always" } }), []);
  assert.deepEqual(problemsOf({ image: { reference: "", pullPolicy: "Sometimes" } }), [
    "volumes[0].image.reference: Required value",
    'volumes[0].image.pullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
  ]);
});
