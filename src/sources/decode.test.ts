import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { parseQuantity } from "../resources/quantity.ts";
import { decodeManifests, maxManifestBytes, type DecodeResult } from "./decode.ts";

const encoder = new TextEncoder();
const decode = (text: string): DecodeResult => decodeManifests(encoder.encode(text), "pod.yaml");
const messages = (text: string): string[] => decode(text).errors.map((error) => error.message);
const pod = (spec: string, metadata = "{name: a}"): string =>
  `apiVersion: v1\nkind: Pod\nmetadata: ${metadata}\nspec:\n${spec}`;
const container = "  containers:\n  - {name: c, image: busybox}\n";

function onlyPod(text: string): Extract<DecodeResult["objects"][number], { kind: "Pod" }> {
  const { objects, errors } = decode(text);
  assert.deepEqual(errors, []);
  const [object] = objects;
  assert.ok(object?.kind === "Pod");
  return object;
}

test("scalars have the same meaning as in Kubernetes", () => {
  const { manifest } = onlyPod(
    pod(`  hostNetwork: yes
  hostPID: off
  terminationGracePeriodSeconds: 1e1
  volumes: [{name: v, configMap: {name: c, defaultMode: 0644}}]
  nodeSelector: {date: 2020-01-01, time: 1:30}
${container}`),
  );
  assert.equal(manifest.spec.hostNetwork, true);
  assert.equal(manifest.spec.hostPID, false);
  assert.equal(manifest.spec.terminationGracePeriodSeconds, 10);
  assert.equal(manifest.spec.volumes?.[0]?.configMap?.defaultMode, 0o644);
  assert.deepEqual(manifest.spec.nodeSelector, { date: "2020-01-01", time: "1:30" });
});

test("numbers of JSON keep their digits in quantities, and an integer has neither fraction nor exponent", () => {
  const json = (spec: string): string =>
    `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}], ${spec}}}`;
  // Recorded from Kubernetes 1.36.2's own decoder.
  for (const [written, inJson, inYaml] of [
    ["1e3", "1e3", "1k"],
    ["1.5e1", "1.5e1", "15"],
    ["1.50", "1500m", "1500m"],
    ["1e-3", "1e-3", "1m"],
    ["0e5", "0", "0"],
    ["12345678901234567", "12345678901234567", "12345678901234567"],
    ["12345678901234567890123", "12345678901234567890123", "1.2345678901234568e+22"],
    ["9007199254740993.5", "9007199254740993500m", "9007199254740994"],
  ] as const) {
    const cpu = (text: string): string => String(parseQuantity(onlyPod(text).manifest.spec.overhead?.["cpu"] ?? ""));
    assert.equal(cpu(json(`"overhead": {"cpu": ${written}}`)), inJson);
    assert.equal(cpu(pod(`  overhead: {cpu: ${written}}\n${container}`)), inYaml);
  }
  // In a quantity escapes are kept as written; elsewhere they are decoded.
  const escaped = onlyPod(
    json(String.raw`"overhead": {"cpu": "1\u0030m"}, "nodeSelector": {"a": "1\u0030m", "b": "\u002d"}`),
  );
  assert.throws(() => parseQuantity(escaped.manifest.spec.overhead?.["cpu"] ?? ""), /"1\\\\u0030m" is not a quantity/);
  assert.deepEqual(escaped.manifest.spec.nodeSelector, { a: "10m", b: "-" });
  const inYaml = onlyPod(pod(`  overhead: {cpu: "1\\x30m"}\n${container}`)).manifest.spec.overhead;
  assert.deepEqual(inYaml, { cpu: "10m" });
  for (const number of ["1e3", "1.0"]) {
    assert.deepEqual(messages(json(`"terminationGracePeriodSeconds": ${number}`)), [
      "pod.yaml:1:104: spec.terminationGracePeriodSeconds: expected a number, got a number with a fraction or an exponent",
    ]);
  }
});

const caseText = (name: string): string =>
  readFileSync(new URL(`../../test/fixtures/cases/${name}.yaml`, import.meta.url), "utf8");

test("texts that resemble numbers stay texts, and keys stay as written", () => {
  const { objects, errors } = decode(caseText("text-like-a-number"));
  assert.deepEqual(errors, []);
  const [members, machine] = objects;
  assert.ok(members?.kind === "ConfigMap" && machine?.kind === "Pod");
  assert.deepEqual(members.manifest.data, { e1: "first" });
  assert.deepEqual(machine.manifest.metadata, { name: "yaml-e2", labels: { commit: "e1234567" } });
  const [container1] = machine.manifest.spec.containers;
  assert.deepEqual(
    [container1?.name, container1?.command, container1?.env],
    ["e1", ["find", ".", "-maxdepth", "1"], [{ name: "MACHINE_FAMILY", value: "e2" }]],
  );
  const keys = decode(caseText("number-like-keys")).objects[0];
  assert.ok(keys?.kind === "ConfigMap");
  assert.deepEqual(keys.manifest.data, { e1: "first" });
});

test("YAML 1.2 is rejected, because its numbers and words differ", () => {
  assert.deepEqual(messages(caseText("yaml-1.2-directive")), [
    'pod.yaml:1:1: found incompatible YAML document: "%YAML 1.2"; Kubernetes reads 1.1: remove the line',
  ]);
});

test("null in a list is the empty value of its type, and a whole float is an integer", () => {
  const { manifest } = onlyPod(caseText("null-in-a-list"));
  const [container1] = manifest.spec.containers;
  assert.deepEqual([container1?.args, container1?.securityContext?.runAsUser], [["a", "", ""], 1001]);
  const lists = onlyPod(
    pod(`  securityContext: {supplementalGroups: [null, 5]}
  tolerations: [~]
  overhead: {cpu: null}
${container}`),
  );
  assert.deepEqual(lists.manifest.spec.securityContext?.supplementalGroups, [0, 5]);
  assert.deepEqual(lists.manifest.spec.tolerations, [{}]);
  assert.deepEqual(lists.manifest.spec.overhead, { cpu: "0" });
  assert.deepEqual(messages(pod("  containers: [null]\n")), ["pod.yaml:5:16: spec.containers[0].name: Required value"]);
});

test("numbers must fit their field, and quantities keep all their digits", () => {
  const { manifest } = onlyPod(
    pod(`  terminationGracePeriodSeconds: 9223372036854775807
  overhead: {memory: 9007199254740993, cpu: 1.50}
${container}status: {count: 9223372036854775807}
`),
  );
  assert.equal(manifest.spec.terminationGracePeriodSeconds, Number.MAX_SAFE_INTEGER);
  assert.deepEqual(manifest.spec.overhead, { memory: "9007199254740993", cpu: 1.5 });
  assert.ok(JSON.stringify(manifest).includes("9007199254740991"), "what nobody here reads can be sent on");
  assert.deepEqual(
    messages(
      pod(`  priority: 2147483648
  terminationGracePeriodSeconds: 9223372036854775808
  activeDeadlineSeconds: 1e21
  hostname: 9223372036854775808
  containers:
  - {name: c, image: i, livenessProbe: {httpGet: {port: 3000000000}}}
`),
    ),
    [
      "pod.yaml:5:3: spec.priority: the number is outside int32: -2147483648 to 2147483647",
      "pod.yaml:6:3: spec.terminationGracePeriodSeconds: the number exceeds 64 bits",
      "pod.yaml:7:3: spec.activeDeadlineSeconds: the number exceeds 64 bits",
      "pod.yaml:8:3: spec.hostname: expected a string, got a number; put it in quotes",
      "pod.yaml:10:51: spec.containers[0].livenessProbe.httpGet.port: the number is outside int32: -2147483648 to 2147483647",
    ],
  );
});

test("null is an unset field, and an empty text in a map of texts", () => {
  const { manifest } = onlyPod(pod(`  hostNetwork: null\n  volumes:\n${container}`, "{name: a, labels: {x: ~}}"));
  assert.ok(!("hostNetwork" in manifest.spec) && !("volumes" in manifest.spec));
  assert.deepEqual(manifest.metadata.labels, { x: "" });
});

test("anchors, aliases and merge keys are expanded, and a field's own value overrides a merged one", () => {
  const { manifest } = onlyPod(
    pod(`  containers:
  - &base {name: one, image: busybox, env: &env [{name: A, value: b}]}
  - {<<: *base, name: two}
  - <<: [{image: other}, *base]
    name: three
    env: *env
`),
  );
  const env = [{ name: "A", value: "b" }];
  assert.deepEqual(
    manifest.spec.containers.map(({ name, image, env: variables }) => [name, image, variables]),
    [
      ["one", "busybox", env],
      ["two", "busybox", env],
      ["three", "other", env],
    ],
  );
});

test("several documents, Lists and JSON give their objects in order; empty documents give none", () => {
  const text = `---
# nothing
---
${pod(container)}---
null
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: v}}
- {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: v}}
---
{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "b"}, "spec": {"containers": []}}]}
`;
  const { objects, errors } = decode(text);
  assert.deepEqual(errors, []);
  assert.deepEqual(
    objects.map(({ kind, manifest }) => [kind, manifest.metadata.name]),
    [
      ["Pod", "a"],
      ["ConfigMap", "c"],
      ["Secret", "s"],
      ["Pod", "b"],
    ],
  );
  assert.deepEqual(objects[3]?.origin.locate(["metadata", "name"]), { line: 19, column: 65 });
});

test("JSON with tabs and a byte order mark is read", () => {
  const { objects, errors } = decode(
    '\ufeff{\n\t"apiVersion": "v1",\n\t"kind": "ConfigMap",\n\t"metadata": {"name": "c"}\n}\n',
  );
  assert.deepEqual([objects.length, errors.length], [1, 0]);
});

test("an unknown field is rejected with its line and a suggestion", () => {
  assert.deepEqual(messages(pod(`  restartpolicy: Never\n${container}`)), [
    'pod.yaml:5:3: spec.restartpolicy: unknown field "restartpolicy"; did you mean "restartPolicy"?',
  ]);
  assert.deepEqual(messages(pod("  containers:\n  - name: c\n    image: b\n    port: []\n")), [
    'pod.yaml:8:5: spec.containers[0].port: unknown field "port"; did you mean "ports"?',
  ]);
});

test("all wrong types in a file are reported, in the order of its lines", () => {
  const text = pod(`  restartPolicy: never
  containers:
  - name: 5
    image: [busybox]
    ports: [{containerPort: "80"}]
    stdin: 1
    resources: {limits: {cpu: [1]}}
    env: [{name: A, value: yes}]
`);
  assert.deepEqual(messages(text), [
    'pod.yaml:5:3: spec.restartPolicy: Unsupported value: "never": supported values: "Always", "OnFailure", "Never"; did you mean "Never"?',
    "pod.yaml:7:5: spec.containers[0].name: expected a string, got a number; put it in quotes",
    "pod.yaml:8:5: spec.containers[0].image: expected a string, got a list",
    "pod.yaml:9:14: spec.containers[0].ports[0].containerPort: expected a number, got a string; leave out the quotes",
    "pod.yaml:10:5: spec.containers[0].stdin: expected true or false, got a number",
    "pod.yaml:11:26: spec.containers[0].resources.limits.cpu: expected a string or a number, got a list",
    "pod.yaml:12:21: spec.containers[0].env[0].value: expected a string, got a boolean; put it in quotes (plain yes, no, on, off, y and n are booleans in YAML)",
  ]);
});

test("a missing field is reported at its place", () => {
  assert.deepEqual(messages("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n"), [
    "pod.yaml:4:1: spec.containers: Required value",
  ]);
  assert.deepEqual(messages("metadata: {name: a}\n"), ['pod.yaml:1:1: kind: Required value: for example "Pod"']);
  assert.deepEqual(messages("kind: Pod\n"), ['pod.yaml:1:1: apiVersion: Required value: "v1" for kind Pod']);
});

test("unsupported kinds and versions are named", () => {
  assert.deepEqual(messages("apiVersion: apps/v1\nkind: Deployment\n"), [
    'pod.yaml:2:1: kind: Unsupported value: "Deployment": podwright runs pods; write its spec.template as a manifest of kind Pod',
  ]);
  assert.deepEqual(messages("apiVersion: v1\nkind: pod\n"), [
    'pod.yaml:2:1: kind: Unsupported value: "pod": podwright accepts Pod, ConfigMap, Secret, PersistentVolumeClaim, PersistentVolume, StorageClass, CSIDriver and Lists of them; did you mean "Pod"?',
  ]);
  assert.deepEqual(messages("apiVersion: v2\nkind: Pod\n"), [
    'pod.yaml:1:1: apiVersion: Unsupported value: "v2": the apiVersion of kind Pod is "v1"',
  ]);
  assert.deepEqual(messages("apiVersion: v1\nkind: StorageClass\n"), [
    'pod.yaml:1:1: apiVersion: Unsupported value: "v1": the apiVersion of kind StorageClass is "storage.k8s.io/v1"',
  ]);
  assert.deepEqual(messages("- a\n"), [
    "pod.yaml:1:1: expected a manifest (a map with apiVersion and kind), got a list",
  ]);
});

test("broken YAML is reported with its position, and the other documents are read", () => {
  const { objects, errors } = decode(`${pod(container)}---\na: b: c\n---\nx: "y\n`);
  assert.equal(objects.length, 1);
  assert.deepEqual(
    errors.map((error) => [error.position?.line, error.field]),
    [
      [8, undefined],
      [10, undefined],
    ],
  );
  assert.match(messages("a:\n\tb: 1\n")[0] ?? "", /^pod\.yaml:2:1: invalid YAML: tabs cannot indent/);
});

test("a repeated key and an unknown alias are errors", () => {
  assert.deepEqual(messages("a: 1\nb: *x\na: 2\n"), [
    "pod.yaml:2:4: b: an alias without an anchor above it; a string that starts with * needs quotes",
    "pod.yaml:3:1: a: is a duplicate key",
  ]);
});

test("alias bombs, cycles and deep nesting quickly end in an error", () => {
  const bomb = Array.from({ length: 30 }, (_, i) => `a${i}: &a${i} [${i === 0 ? "x" : `*a${i - 1}, *a${i - 1}`}]`);
  for (const text of [
    bomb.join("\n"),
    "a: &a [*a, *a]",
    "[".repeat(50_000),
    `${"{a: ".repeat(200)}1${"}".repeat(200)}`,
  ]) {
    const { objects, errors } = decode(text);
    assert.equal(objects.length, 0);
    assert.equal(errors.length, 1);
    assert.match(errors[0]?.detail ?? "", /alias|nests/);
  }
  assert.match(messages("- a\n".repeat(400_000))[0] ?? "", /YAML tokens/);
});

test("binary or oversized input is rejected", () => {
  const of = (bytes: Uint8Array): string => decodeManifests(bytes, "f").errors[0]?.message ?? "";
  assert.equal(of(Uint8Array.of(0x61, 0x0a, 0xff, 0x61)), "f:2:1: is not UTF-8 text");
  assert.equal(of(Uint8Array.of(0xff, 0xfe, 0x61, 0x00)), "f:1:1: is UTF-16 text; save it as UTF-8");
  assert.equal(of(Uint8Array.of(0x7f, 0x45, 0x4c, 0x46)), "f:1:1: contains the character U+007F: is it a binary file?");
  assert.equal(of(new Uint8Array(maxManifestBytes + 1)), "f: is longer than 10 MiB: too big for a manifest");
});

test("an empty file has no objects and is not an error", () => {
  for (const text of ["", "\n", "# only a comment\n", "---\n"]) {
    assert.deepEqual(decode(text), { objects: [], flawed: [], errors: [] });
  }
});

test("errors never show the values of a Secret", () => {
  const text =
    'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: 424242, b: [hunter2]}\ntype: "hunter2\n';
  for (const candidate of [text, text.replace('"hunter2', "[hunter2]")]) {
    const shown = messages(candidate).join("\n");
    assert.ok(shown !== "" && !/hunter2|424242/.test(shown), shown);
  }
});

test("names in a manifest cannot control a terminal or reach a prototype", () => {
  const [shown = ""] = messages(pod(`  "\\e[2J\\u202e": 1\n${container}`));
  assert.match(shown, /\\u001b\[2J\\u202e/);
  assert.match(
    messages(pod(container, "{name: a, labels: {__proto__: {x: y}}}"))[0] ?? "",
    /__proto__: is not an allowed name/,
  );
});

test("decoding any JSON value never throws and always gives a reason", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: value });
      const { objects, errors } = decode(text);
      assert.ok(objects.length === 1 || errors.length > 0);
    }),
    { numRuns: 200 },
  );
});

test("decoding any text never throws", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...Array.from("ab:-[]{}&*!|>'\"#%@,?\n\t 0")) }), (text) => {
      const { objects } = decode(text);
      assert.deepEqual(objects, []);
    }),
    { numRuns: 300 },
  );
});
