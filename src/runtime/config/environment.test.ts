import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../../test/support/pods.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { EnvVarSource } from "../../api/volume.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import { type EnvironmentInputs, expandCommand, expandStaticCommand, makeEnvironment } from "./environment.ts";

const encoder = new TextEncoder();
const inputs: EnvironmentInputs = {
  objects: {
    configMap: (namespace, name) =>
      namespace === "ns" && name === "config"
        ? {
            data: new Map([
              ["k", "v"],
              ["l", "w"],
            ]),
            binaryData: new Map([["b", new Uint8Array([1])]]),
          }
        : undefined,
    secret: (namespace, name) =>
      namespace === "ns" && name === "secret"
        ? {
            ...{ uid: "", type: "Opaque" },
            data: new Map([
              ["s", encoder.encode("hush")],
              ["bin", new Uint8Array([0xff, 0xfe])],
            ]),
          }
        : undefined,
  },
  podIPs: ["10.0.0.1", "fd00::1"],
  hostIPs: ["192.0.2.2", "fd00::2"],
  environmentFiles: (volumeName, path) =>
    `${volumeName}/${path}` === "v/dir/env" ? encoder.encode("# made by init\nA='1 $(X)'\nEMPTY=''\n") : undefined,
  serviceVariables: [],
  resources: { allocatable: { cpu: "2", memory: "4Gi" } },
};

function environment(
  container: Partial<Container>,
  changed: Partial<EnvironmentInputs> = {},
  spec: Partial<Pod["spec"]> = {},
  annotations: Readonly<Record<string, string>> = { "example.com/Note": "héllo" },
) {
  const whole = { name: "c", ...container };
  const pod = podWith(
    { containers: [whole], nodeName: "node1", serviceAccountName: "sa", ...spec },
    {
      labels: { app: "web", b: 'q"\n' },
      annotations,
    },
  );
  return makeEnvironment(pod, whole, { ...inputs, ...changed });
}

function texts(...args: Parameters<typeof environment>): string[] {
  return environment(...args).map(({ name, value }) => `${name}=${new TextDecoder().decode(value)}`);
}

test("variables are in the spec's order, and can refer to earlier ones", () => {
  const env = [
    { name: "A", value: "1" },
    { name: "B", value: "$(A)$(C)" },
    { name: "C", value: "$$(A)" },
    { name: "E" },
  ];
  assert.deepEqual(texts({ env }), ["A=1", "B=1$(C)", "C=$(A)", "E="]);
});

test("envFrom comes first, with its prefix; later names take precedence", () => {
  const envFrom = [
    { prefix: "P_", configMapRef: { name: "config" } },
    { configMapRef: { name: "config" } },
    { secretRef: { name: "secret" } },
  ];
  assert.deepEqual(texts({ envFrom: envFrom.slice(0, 2), env: [{ name: "k", value: "own $(P_l)" }] }), [
    "P_k=v",
    "P_l=w",
    "k=own w",
    "l=w",
  ]);
  assert.deepEqual(
    environment({ envFrom: envFrom.slice(2) }).map(({ name }) => name),
    ["s", "bin"],
  );
});

test("services' variables come last, unless already set; the pod's can refer to them", () => {
  const serviceVariables = [
    { name: "WEB_SERVICE_HOST", value: "10.96.0.1" },
    { name: "A", value: "service" },
  ];
  assert.deepEqual(
    texts(
      {
        env: [
          { name: "U", value: "$(WEB_SERVICE_HOST) $(A)" },
          { name: "A", value: "own" },
        ],
      },
      { serviceVariables },
    ),
    ["U=10.96.0.1 service", "A=own", "WEB_SERVICE_HOST=10.96.0.1"],
  );
});

test("a secret keeps its bytes, also within another variable", () => {
  const [direct, joined] = environment({
    env: [
      { name: "S", valueFrom: { secretKeyRef: { name: "secret", key: "bin" } } },
      { name: "J", value: "<$(S)>" },
    ],
  });
  assert.deepEqual(direct?.value, new Uint8Array([0xff, 0xfe]));
  assert.deepEqual(joined?.value, new Uint8Array([0x3c, 0xff, 0xfe, 0x3e]));
});

const fields: [string, string][] = [
  ["metadata.name", "p"],
  ["metadata.namespace", "ns"],
  ["metadata.uid", "u"],
  ["metadata.labels['app']", "web"],
  ["metadata.labels['none']", ""],
  ["metadata.labels['toString']", ""],
  ["metadata.annotations['example.com/Note']", "héllo"],
  ["metadata.labels", 'app="web"\nb="q\\"\\n"'],
  ["spec.nodeName", "node1"],
  ["spec.serviceAccountName", "sa"],
  ["status.hostIP", "192.0.2.2"],
  ["status.hostIPs", "192.0.2.2,fd00::2"],
  ["status.podIP", "10.0.0.1"],
  ["status.podIPs", "10.0.0.1,fd00::1"],
];

for (const [fieldPath, expected] of fields) {
  test(`the field ${fieldPath} is available`, () => {
    assert.deepEqual(texts({ env: [{ name: "F", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } } }] }), [
      `F=${expected}`,
    ]);
  });
}

const resources: [resource: string, divisor: string | undefined, expected: string][] = [
  ["limits.cpu", undefined, "1"],
  ["limits.cpu", "1m", "500"],
  ["limits.memory", undefined, "4294967296"],
  ["limits.memory", "1Mi", "4096"],
  ["requests.memory", "0", "104857600"],
  ["requests.cpu", "1", "0"],
  ["limits.hugepages-2Mi", "1Mi", "4"],
  ["limits.ephemeral-storage", undefined, "0"],
];

for (const [resource, divisor, expected] of resources) {
  test(`the resource ${resource} in units of ${divisor ?? "one"} is ${expected}`, () => {
    const resourceFieldRef = { resource, ...(divisor !== undefined && { divisor }) };
    const container = {
      env: [{ name: "R", valueFrom: { resourceFieldRef } }],
      resources: { limits: { cpu: "500m", "hugepages-2Mi": "4Mi" }, requests: { memory: "100Mi" } },
    };
    assert.deepEqual(texts(container), [`R=${expected}`]);
  });
}

test("an unset limit is the pod's, else the node's, and other containers' are available", () => {
  const other = { name: "other", resources: { limits: { cpu: 3 } } };
  const env = [
    { name: "M", valueFrom: { resourceFieldRef: { resource: "limits.memory" } } },
    { name: "O", valueFrom: { resourceFieldRef: { resource: "limits.cpu", containerName: "other" } } },
  ];
  const spec = { containers: [{ name: "c" }], initContainers: [other], resources: { limits: { memory: "1Ki" } } };
  assert.deepEqual(texts({ env }, {}, spec), ["M=1024", "O=3"]);
});

test("an unset limit of an init container is 0 to others, and its default to itself", () => {
  const spec = { containers: [{ name: "c" }], initContainers: [{ name: "init" }], resources: { limits: { cpu: 1 } } };
  const limitOf = (containerName: string) => {
    return ["cpu", "memory"].map((name) => ({
      name,
      valueFrom: { resourceFieldRef: { resource: `limits.${name}`, containerName } },
    }));
  };
  assert.deepEqual(texts({ env: limitOf("init") }, {}, spec), ["cpu=0", "memory=0"]);
  assert.deepEqual(texts({ env: limitOf("c") }, {}, spec), ["cpu=1", "memory=4294967296"]);
  assert.deepEqual(texts({ name: "init", env: limitOf("") }, {}, spec), ["cpu=1", "memory=4294967296"]);
});

type Source = NonNullable<NonNullable<Container["env"]>[number]["valueFrom"]>;

const refused: [string, Source, RegExp][] = [
  ["a missing ConfigMap", { configMapKeyRef: { name: "nope", key: "k" } }, /^configmap "nope" not found$/],
  [
    "a missing key of a ConfigMap",
    { configMapKeyRef: { name: "config", key: "x" } },
    /^couldn't find key x in ConfigMap ns\/config$/,
  ],
  [
    "binary data of a ConfigMap",
    { configMapKeyRef: { name: "config", key: "b" } },
    /^couldn't find key b in ConfigMap ns\/config$/,
  ],
  ["a missing Secret", { secretKeyRef: { name: "nope", key: "k" } }, /^secret "nope" not found$/],
  [
    "a missing key of a Secret",
    { secretKeyRef: { name: "secret", key: "x" } },
    /^couldn't find key x in Secret ns\/secret$/,
  ],
  [
    "a field that is not offered",
    { fieldRef: { fieldPath: "spec.hostname" } },
    /^field label not supported: spec\.hostname$/,
  ],
  ["a part of a field without parts", { fieldRef: { fieldPath: "spec.nodeName['x']" } }, /does not support subscript/],
  [
    "another API version",
    { fieldRef: { apiVersion: "v2", fieldPath: "metadata.name" } },
    /^unsupported pod version: v2$/,
  ],
  [
    "a resource that is not offered",
    { resourceFieldRef: { resource: "limits.gpu" } },
    /^unsupported container resource : limits\.gpu$/,
  ],
  [
    "a container that is not there",
    { resourceFieldRef: { resource: "limits.cpu", containerName: "x" } },
    /^container x not found$/,
  ],
  [
    "a key of a file that is not there",
    { fileKeyRef: { volumeName: "v", path: "f", key: "k" } },
    /file "f" of volume "v" not found/,
  ],
  [
    "a key that a file does not have",
    { fileKeyRef: { volumeName: "v", path: "dir/env", key: "B" } },
    /environment variable key B not found in file "dir\/env" of volume "v"/,
  ],
];

for (const [name, valueFrom, message] of refused) {
  test(`${name} is rejected with a clear message`, () => {
    assert.throws(
      () => environment({ env: [{ name: "X", valueFrom }] }),
      (error) =>
        error instanceof ContainerConfigError &&
        message.test(error.message) &&
        error.reason === "CreateContainerConfigError",
    );
  });
}

test("optional missing sources are omitted, and hide nothing", () => {
  const envFrom = [
    { configMapRef: { name: "nope", optional: true } },
    { secretRef: { name: "nope", optional: true } },
    { configMapRef: { name: "config" } },
  ];
  const env = [
    { name: "k", valueFrom: { configMapKeyRef: { name: "config", key: "x", optional: true } } },
    { name: "S", valueFrom: { secretKeyRef: { name: "nope", key: "x", optional: true } } },
  ];
  assert.deepEqual(texts({ envFrom, env }), ["k=v", "l=w"]);
});

test("envFrom requires sources that are not optional", () => {
  assert.throws(() => environment({ envFrom: [{ configMapRef: { name: "nope" } }] }), /configmap "nope" not found/);
  assert.throws(() => environment({ envFrom: [{ secretRef: { name: "nope" } }] }), /secret "nope" not found/);
});

test("variables that no process can have are rejected without showing them", () => {
  const value = "hush\0hush";
  assert.throws(
    () => environment({ env: [{ name: "Z", value }] }),
    (error) => error instanceof Error && !error.message.includes("hush"),
  );
  assert.throws(() => environment({ env: [{ name: "A=B", value: "" }] }), /is not a valid environment/);
});

test("names contain any printable ASCII except =", () => {
  const names = ["a b", "1", "-.", "x/y:z", "~!@#$%^&*()", "A"];
  assert.deepEqual(
    texts({ env: names.map((name) => ({ name, value: "v" })) }),
    names.map((name) => `${name}=v`),
  );
});

test("all that a process gets has a limit, and what would exceed it is never made", () => {
  const most = 6 << 20;
  const misfit = (name: string) => ({
    name: "ContainerConfigError",
    message: `${name} does not fit: a process has at most ${most} bytes of environment, command and arguments`,
  });
  const kibibyte = { name: "A0", value: "x".repeat(1 << 10) };
  const mebibyte = { name: "A", value: "$(A0)".repeat(1 << 10) };
  const growing = Array.from({ length: 6 }, (_, level) => ({
    name: `L${level}`,
    value: `$(L${level - 1})`.repeat(99),
  }));
  assert.throws(
    () => environment({ env: [kibibyte, mebibyte, { name: "L", value: "$(A)".repeat(1e5) }] }),
    misfit("environment variable L"),
  );
  assert.throws(
    () => environment({ env: [{ name: "L-1", value: "x" }, ...growing] }),
    misfit("environment variable L3"),
  );
  // Each of them is small enough.
  const copies = Array.from({ length: 3000 }, (_, copy) => ({ name: `B${copy}`, value: "$(A)" }));
  assert.throws(() => environment({ env: [kibibyte, mebibyte, ...copies] }), misfit("environment variable B4"));
  const args = Array.from({ length: 600 }, () => "$(A)");
  const container = { name: "c", env: [kibibyte, mebibyte], args };
  assert.throws(() => expandCommand(container, environment(container)), misfit("the command of container c"));
  assert.equal(expandCommand({ ...container, args: args.slice(0, 4) }, environment(container)).args.length, 4);
});

test("copies of other sources count as well, and what is replaced does not", () => {
  const value = "x".repeat(1 << 20);
  const data = new Map([["k", value]]);
  const objects = {
    configMap: () => ({ data, binaryData: new Map() }),
    secret: () => ({ uid: "", type: "Opaque", data: new Map([["k", encoder.encode(value)]]) }),
  };
  const env = (valueFrom: EnvVarSource, names: (copy: number) => string) => {
    return { env: Array.from({ length: 7 }, (_, copy) => ({ name: names(copy), valueFrom })) };
  };
  const annotations = { fieldRef: { fieldPath: "metadata.annotations['long']" } };
  const ofKey = { configMapKeyRef: { name: "config", key: "k" } };
  const files = { environmentFiles: () => encoder.encode(`k='${value}'`) };
  for (const container of [
    { envFrom: Array.from({ length: 7 }, (_, copy) => ({ prefix: `${copy}`, configMapRef: { name: "config" } })) },
    { envFrom: Array.from({ length: 7 }, (_, copy) => ({ prefix: `${copy}`, secretRef: { name: "secret" } })) },
    env(annotations, (copy) => `N${copy}`),
    env(ofKey, (copy) => `N${copy}`),
    env({ fileKeyRef: { volumeName: "v", path: "p", key: "k" } }, (copy) => `N${copy}`),
  ]) {
    assert.throws(
      () => environment(container, { objects, ...files }, {}, { long: value }),
      /5 does not fit|5k does not fit/,
    );
  }
  assert.equal(
    environment(
      env(ofKey, () => "same"),
      { objects },
    ).length,
    1,
  );
});

test("command and arguments are expanded from the whole environment", () => {
  const container = { name: "c", command: ["sh", "$(A)", "$$(A)"], args: ["$(B)", "$(C)"] };
  const values = [
    { name: "A", value: encoder.encode("ä") },
    { name: "B", value: encoder.encode("") },
  ];
  assert.deepEqual(expandCommand(container, values), { command: ["sh", "ä", "$(A)"], args: ["", "$(C)"] });
  assert.deepEqual(expandCommand({ name: "c" }, values), { command: [], args: [] });
  const binary = [{ name: "A", value: new Uint8Array([0xff]) }];
  assert.throws(() => expandCommand(container, binary), /is not UTF-8/);
});

test("probes see only plain values", () => {
  const env = [
    { name: "A", value: "$(B)" },
    { name: "F", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
  ];
  assert.deepEqual(expandStaticCommand(["$(A)", "$(F)", "$(X)"], env), ["$(B)", "", "$(X)"]);
});

test("a key of a file in a volume is a variable's literal value, and optional ones may be missing", () => {
  const from = (key: string, path = "dir/env", optional = false) => ({
    name: `V_${key}`,
    valueFrom: { fileKeyRef: { volumeName: "v", path, key, optional } },
  });
  assert.deepEqual(texts({ env: [from("A"), from("EMPTY", "dir/env", true), from("B", "none", true)] }), [
    "V_A=1 $(X)",
  ]);
});
