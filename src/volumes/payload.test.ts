import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import { payloadInputs, volumePayload } from "./payload.ts";

const encoder = new TextEncoder();
const settings = { data: new Map([["log.level", "debug"]]), binaryData: new Map([["blob", Uint8Array.of(0, 255)]]) };
const token = { uid: "", type: "Opaque", data: new Map([["token", encoder.encode("hunter2")]]) };
const objects: ObjectLookup = {
  configMap: (namespace, name) => (namespace === "ns" && name === "settings" ? settings : undefined),
  secret: (namespace, name) => (namespace === "ns" && name === "token" ? token : undefined),
};
const inputs = {
  objects,
  downward: { podIPs: [], hostIPs: ["10.0.0.1"], resources: { allocatable: { cpu: 4, memory: "8Gi" } } },
};
const pod: Pod = podWith(
  { containers: [{ name: "app", resources: { limits: { memory: "64Mi" } } }] },
  { labels: { b: "2", a: "1" } },
);

function filesOf(volume: Omit<Volume, "name">): Record<string, string> {
  const files = volumePayload({ name: "v", ...volume }, pod, inputs) ?? new Map();
  return Object.fromEntries(
    [...files].map(([path, { data, mode }]) => [path, `${mode.toString(8)} ${new TextDecoder("latin1").decode(data)}`]),
  );
}

test("keys of a ConfigMap become files, including binary ones", () => {
  const blob = `644 \0\u00ff`;
  assert.deepEqual(filesOf({ configMap: { name: "settings" } }), { "log.level": "644 debug", blob });
  assert.deepEqual(filesOf({ configMap: { name: "settings", defaultMode: 0o400 } })["log.level"], "400 debug");
});

test("items select keys and set their paths and permissions", () => {
  const items = [
    { key: "log.level", path: "conf/level", mode: 0o440 },
    { key: "blob", path: "b" },
  ];
  assert.deepEqual(Object.keys(filesOf({ configMap: { name: "settings", items } })), ["conf/level", "b"]);
  assert.equal(filesOf({ configMap: { name: "settings", items } })["conf/level"], "440 debug");
  assert.deepEqual(filesOf({ secret: { secretName: "token", items: [{ key: "token", path: "t" }] } }), {
    t: "644 hunter2",
  });
});

test("missing objects and keys are named, unless optional; values never are", () => {
  assert.throws(() => filesOf({ configMap: { name: "none" } }), { message: 'configmap "none" not found' });
  assert.throws(() => filesOf({ secret: { secretName: "none" } }), { message: 'secret "none" not found' });
  const items = [{ key: "no", path: "p" }];
  assert.throws(() => filesOf({ configMap: { name: "settings", items } }), /non-existent config key: no$/);
  assert.throws(() => filesOf({ secret: { secretName: "token", items } }), /non-existent secret key: no$/);
  assert.deepEqual(filesOf({ configMap: { name: "none", optional: true } }), {});
  assert.deepEqual(filesOf({ secret: { secretName: "token", items, optional: true } }), {});
});

test("the downward API shows metadata and resources, and no field that could change unnoticed", () => {
  const field = (fieldPath: string) => ({ fieldRef: { fieldPath } });
  const items = [
    { path: "labels", ...field("metadata.labels") },
    { path: "name", mode: 0o400, ...field("metadata.name") },
    { path: "limit", resourceFieldRef: { containerName: "app", resource: "limits.memory", divisor: "1Mi" } },
    { path: "cpu", resourceFieldRef: { containerName: "app", resource: "limits.cpu" } },
  ];
  assert.deepEqual(filesOf({ downwardAPI: { items } }), {
    labels: '644 a="1"\nb="2"',
    name: "400 p",
    limit: "644 64",
    cpu: "644 4",
  });
  assert.throws(() => filesOf({ downwardAPI: { items: [{ path: "ip", ...field("status.podIP") }] } }), /not supported/);
});

test("a file shows an unset limit as the node's, whatever limit the pod has", () => {
  const limited: Pod = podWith({
    ...{ containers: [{ name: "app" }], initContainers: [{ name: "init" }] },
    resources: { limits: { cpu: 1, memory: "1Gi" } },
  });
  const items = ["app", "init"].flatMap((containerName) =>
    ["cpu", "memory"].map((resource) => ({
      path: `${containerName}-${resource}`,
      resourceFieldRef: {
        containerName,
        resource: `limits.${resource}`,
        ...(resource === "memory" && { divisor: "1Gi" }),
      },
    })),
  );
  const payload = volumePayload({ name: "v", downwardAPI: { items } }, limited, inputs) ?? new Map();
  assert.deepEqual(
    [...payload].map(([path, { data }]) => `${path} ${new TextDecoder().decode(data)}`),
    ["app-cpu 4", "app-memory 8", "init-cpu 4", "init-memory 8"],
  );
});

test("projected sources share one volume, later ones override, and tokens are rejected by name", () => {
  const name = { fieldRef: { fieldPath: "metadata.name" } };
  const sources = [
    { configMap: { name: "settings", items: [{ key: "log.level", path: "x" }] } },
    { secret: { name: "token" } },
    { downwardAPI: { items: [{ path: "x", ...name }] } },
  ];
  assert.deepEqual(filesOf({ projected: { sources, defaultMode: 0o600 } }), { x: "600 p", token: "600 hunter2" });
  const tokens = [{ serviceAccountToken: { path: "t" } }];
  assert.throws(() => filesOf({ projected: { sources: tokens } }), /source serviceAccountToken is not supported/);
});

test("a token belongs to the common user of the pod's containers, if there is one, and to its group", () => {
  const withTokens = { ...objects, serviceAccountToken: () => ({ token: "t" }) };
  const volume = { name: "v", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } };
  const owner = (spec: Partial<Pod["spec"]>): unknown => {
    const payload = volumePayload(volume, podWith(spec), { ...inputs, objects: withTokens });
    const { mode, uid } = payload?.get("t") ?? {};
    return [mode?.toString(8), uid];
  };
  const as = (name: string, runAsUser?: number) => ({ name, securityContext: { runAsUser } });
  const securityContext = { runAsUser: 1000 };
  assert.deepEqual(owner({ containers: [{ name: "c" }] }), ["644", undefined]);
  assert.deepEqual(owner({ containers: [{ name: "c" }], securityContext: { fsGroup: 2000 } }), ["600", undefined]);
  assert.deepEqual(owner({ containers: [{ name: "c" }], securityContext }), ["600", 1000]);
  assert.deepEqual(owner({ containers: [as("a", 7), as("b", 7)] }), ["600", 7]);
  assert.deepEqual(owner({ containers: [as("a", 0)] }), ["600", 0], "root is a user too");
  assert.deepEqual(owner({ containers: [as("a", 7), { name: "b" }], securityContext }), ["644", undefined]);
  assert.deepEqual(owner({ containers: [as("a", 7), { name: "b" }] }), ["644", undefined]);
  for (const more of [{ initContainers: [as("i", 7)] }, { ephemeralContainers: [as("e", 7)] }]) {
    assert.deepEqual(owner({ ...more, containers: [{ name: "c" }], securityContext }), ["644", undefined]);
  }
});

test("inputs are equal as long as the pod and its objects are", () => {
  const volume: Volume = { name: "v", projected: { sources: [{ configMap: { name: "settings" } }] } };
  const before = payloadInputs(volume, pod, inputs);
  assert.deepEqual(
    before.map((input, index) => input === payloadInputs(volume, pod, inputs)[index]),
    [...before].map(() => true),
  );
  const changed = { ...inputs, objects: { ...objects, configMap: () => ({ ...settings }) } };
  assert.ok(payloadInputs(volume, pod, changed).some((input, index) => input !== before[index]));
  assert.ok(payloadInputs(volume, { ...pod }, inputs)[0] !== before[0]);
});

test("what many files show is in memory once", () => {
  const sources = Array.from({ length: 3 }, (_, copy) => [
    { configMap: { name: "settings", items: [{ key: "log.level", path: `level${copy}` }] } },
    { secret: { name: "token", items: [{ key: "token", path: `token${copy}` }] } },
    { downwardAPI: { items: [{ path: `labels${copy}`, fieldRef: { fieldPath: "metadata.labels" } }] } },
  ]).flat();
  const volume = { name: "v", projected: { sources } };
  const files = [...(volumePayload(volume, pod, inputs)?.values() ?? [])];
  assert.equal(files.length, 9);
  assert.equal(new Set(files.map(({ data }) => data)).size, 3);
});
