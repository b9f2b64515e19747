import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podYaml } from "../../test/support/sources.ts";
import { MemoryFiles } from "../sim/files.ts";
import { type LoadDependencies, type LoadedManifests, loadManifests } from "./load.ts";

const clock = new ManualClock();

async function dependencies(contents: Readonly<Record<string, string>>): Promise<LoadDependencies> {
  const files = new MemoryFiles(clock);
  await files.makeDirectory("/home/user/d", 0o755);
  for (const [path, text] of Object.entries(contents)) await files.write(`/home/user/${path}`, text, 0o644);
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
  return {
    clock,
    files,
    network: {
      httpGet: async ({ url }) => ({ status: url.endsWith("good") ? 200 : 404, body: encode(podYaml("remote")) }),
    },
    workingDirectory: "/home/user",
    readDescriptor: async (descriptor) => encode(podYaml(descriptor === 0 ? "stdin" : `open-${descriptor}`)),
  };
}

async function load(paths: string[], contents: Readonly<Record<string, string>> = {}): Promise<LoadedManifests> {
  return loadManifests(paths, await dependencies(contents), new AbortController().signal);
}
const names = (loaded: LoadedManifests): unknown[] => loaded.pods.map((pod) => pod.metadata.name);
const messages = (loaded: LoadedManifests): string[] => loaded.errors.map((error) => error.message);

test("files, directories, URLs and standard input are read, each with its origin", async () => {
  const contents = {
    "a.yaml": podYaml("one"),
    "d/z.yml": podYaml("two"),
    "d/b.json": podYaml("three"),
    "d/README": "x",
  };
  const loaded = await load(["a.yaml", "/home/user/d", "http://h/good", "-"], contents);
  assert.deepEqual(messages(loaded), []);
  assert.deepEqual(names(loaded), ["one", "three", "two", "remote", "stdin"]);
});

test("an empty name is an error, not the working directory", async () => {
  const loaded = await load([""], { "a.yaml": podYaml("one") });
  assert.deepEqual(messages(loaded), ['"": empty name; use . for the working directory']);
  assert.deepEqual(names(loaded), []);
});

test("priority classes are checked where they stand, except in static pods", async () => {
  const classed = (name: string, fields: string): string => podYaml(name).replace("spec:", `spec:\n  ${fields}`);
  const contents = {
    "d/wrong.yaml": classed("wrong", "priorityClassName: system-node-critical\n  priority: 1"),
    "d/other.yaml": classed("other", "priorityClassName: high"),
  };
  const loaded = await load(["d"], contents);
  assert.deepEqual(names(loaded), ["other"]);
  assert.match(messages(loaded).join("\n"), /^d\/wrong\.yaml:\d+:\d+: spec\.priority: Invalid value: 1/u);
  assert.match(
    loaded.warnings.map(({ message }) => message).join("\n"),
    /^d\/other\.yaml:\d+:\d+: spec\.priorityClassName: has no meaning/u,
  );
  const deps = { ...(await dependencies(contents)), areStatic: true } as const;
  const asStatic = await loadManifests(["d"], deps, new AbortController().signal);
  assert.deepEqual([names(asStatic), messages(asStatic), asStatic.warnings], [["other", "wrong"], [], []]);
});

test("of a directory of 100 manifests the 95 valid ones are loaded, with 5 errors", async () => {
  const contents = Object.fromEntries(
    Array.from({ length: 100 }, (_, index) => {
      const text = podYaml(`p${index}`);
      return [`d/p${index}.yaml`, index % 20 === 3 ? text.replace("image:", "imaeg:") : text];
    }),
  );
  const loaded = await load(["d"], contents);
  // The image is not missing too: it has a wrong name.
  assert.deepEqual([loaded.pods.length, loaded.errors.length], [95, 5]);
  assert.equal(
    messages(loaded)[0],
    'd/p23.yaml:8:5: spec.containers[0].imaeg: unknown field "imaeg"; did you mean "image"?',
  );
});

test("an unknown field hides no other error of its object, and what it was meant for is not missing", async () => {
  const texts = {
    "claim.yaml": `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  acessModes: [ReadWriteOnce]
  volumeMode: Block
  resources: {requests: {storage: 0}}
`,
    "volume.yaml": `apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  accessModes: [Some]
  capacity: {storage: 1Gi}
  hostPth: {path: /srv}
`,
    "pod.yaml": `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartpolicy: Never
  containers:
  - {name: Web, image: i, readinessProbe: {port: 80}}
`,
    "size.yaml": `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [Any], resources: {storage: 1Gi}}
`,
  };
  const errors = async (file: keyof typeof texts): Promise<string[]> => messages(await load([file], texts));
  const modes = '"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"';
  assert.deepEqual(await errors("claim.yaml"), [
    'claim.yaml:5:3: spec.acessModes: unknown field "acessModes"; did you mean "accessModes"?',
    "claim.yaml:6:3: spec.volumeMode: not supported: podwright run does not bind claims to block volumes",
    "claim.yaml:7:26: spec.resources.requests.storage: Invalid value: 0: must be greater than zero",
  ]);
  assert.deepEqual(await errors("volume.yaml"), [
    'volume.yaml:7:3: spec.hostPth: unknown field "hostPth"; did you mean "hostPath"?',
    `volume.yaml:5:3: spec.accessModes: Unsupported value: "Some": supported values: ${modes}`,
  ]);
  const [first, second, third, ...others] = await errors("pod.yaml");
  assert.match(`${first}\n${second}\n${third}`, /restartpolicy.*\n.*readinessProbe\.port.*\n.*containers\[0\]\.name/u);
  assert.deepEqual(others, []);
  assert.deepEqual(await errors("size.yaml"), [
    'size.yaml:4:40: spec.resources.storage: unknown field "storage": it goes below requests',
    `size.yaml:4:8: spec.accessModes: Unsupported value: "Any": supported values: ${modes}`,
  ]);
});

test("ConfigMaps and Secrets are included, and manifests stay as written", async () => {
  const text = `${podYaml("one")}---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`;
  const loaded = await load(["a.yaml"], { "a.yaml": text });
  assert.deepEqual([loaded.configMaps.length, loaded.secrets.length, messages(loaded)], [1, 1, []]);
  assert.deepEqual(
    loaded.storage.map(({ kind }) => kind),
    ["PersistentVolumeClaim"],
  );
  assert.deepEqual(loaded.pods[0]?.spec, { containers: [{ name: "c", image: "busybox" }] });
});

test("duplicate names are an error that names both places, and the first counts", async () => {
  const loaded = await load(["a.yaml", "b.yaml"], { "a.yaml": podYaml("one"), "b.yaml": podYaml("one", "other") });
  assert.deepEqual(messages(loaded), [
    "b.yaml:4:3: metadata.name: Duplicate value: the Pod default/one is also at a.yaml:4",
  ]);
  assert.equal(loaded.pods[0]?.spec.containers[0]?.image, "busybox");
});

test("unreadable inputs are named as given", async () => {
  const loaded = await load(["none.yaml", "d", "http://u:p@h/bad", "empty.yaml", "a.yaml/x"], {
    "empty.yaml": "# nothing\n",
    "a.yaml": "",
  });
  assert.deepEqual(messages(loaded), [
    "none.yaml: does not exist",
    "d: holds no .yaml, .yml or .json file",
    "http://h/bad: the server returned status 404",
    "empty.yaml: contains no manifest",
    "a.yaml/x: does not exist",
  ]);
});
