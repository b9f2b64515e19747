import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { problems } from "../../test/support/manifest-problems.ts";
import { decodeManifests } from "./decode.ts";
import { isIpAddress } from "../base/formats.ts";
import { prepareManifests } from "./prepare.ts";

const ofContainer = (fields: string, spec = ""): string[] =>
  problems(`{${spec} containers: [{name: c, image: busybox, ${fields}}]}`);

test("a plain pod has no problems", () => {
  assert.deepEqual(problems("{containers: [{name: c, image: busybox}]}"), []);
});

test("positions give the line and column of the field", () => {
  const text =
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: c\n    image: b\n    ports:\n    - containerPort: 99999\n";
  const { objects } = decodeManifests(new TextEncoder().encode(text), "pod.yaml");
  assert.deepEqual(
    prepareManifests(objects).errors.map((error) => error.message),
    [
      "pod.yaml:10:7: spec.containers[0].ports[0].containerPort: Invalid value: 99999: must be between 1 and 65535, inclusive",
    ],
  );
});

test("names follow their syntax, and a UID can name a directory", () => {
  assert.deepEqual(problems("{containers: [{name: c, image: b}]}", "{}"), ["metadata.name: Required value"]);
  const [name, namespace, uid, label, value, annotation] = problems(
    "{containers: [{name: c, image: b}]}",
    `{name: A_b, namespace: x.y, uid: ../../etc, labels: {"a b": c, d: "e f"}, annotations: {"x/y/z": v}}`,
  );
  assert.match(name ?? "", /^metadata\.name: Invalid value: "A_b": must consist of lower-case letters/u);
  assert.match(namespace ?? "", /^metadata\.namespace: Invalid value: "x\.y"/u);
  assert.match(uid ?? "", /^metadata\.uid: Invalid value: "\.\.\/\.\.\/etc"/u);
  assert.match(label ?? "", /^metadata\.labels\[a b\]: Invalid value: "a b": name part must/u);
  assert.match(value ?? "", /^metadata\.labels\.d: Invalid value: "e f"/u);
  assert.match(annotation ?? "", /^metadata\.annotations\[x\/y\/z\]: Invalid value/u);
});

test("a pod's namespace, name and UID together fit in a file name", () => {
  const named = (metadata: string): string[] => problems("{containers: [{name: c, image: b}]}", metadata);
  assert.deepEqual(named(`{name: ${"a".repeat(210)}}`), []);
  assert.match(
    named(`{name: ${"a".repeat(211)}}`)[0] ?? "",
    /^metadata\.name: Too long: may not be more than 210 characters/u,
  );
  assert.deepEqual(named(`{name: ${"a".repeat(245)}, namespace: x, uid: abcdefg}`), []);
  assert.equal(named(`{name: ${"a".repeat(246)}, namespace: x, uid: abcdefg}`).length, 1);
});

test("containers need a unique name and an image", () => {
  assert.deepEqual(problems("{containers: []}"), ["spec.containers: Required value"]);
  assert.deepEqual(
    problems('{containers: [{name: c, image: b}, {name: c}, {name: "", image: " b"}, {name: X, image: "b c"}]}'),
    [
      "spec.containers[1].image: Required value",
      'spec.containers[1].name: Duplicate value: "c"',
      "spec.containers[2].name: Required value",
      'spec.containers[2].image: Invalid value: " b": must not have leading or trailing whitespace',
      `spec.containers[3].name: Invalid value: "X": must consist of lower-case letters, digits and '-', with a letter or digit at both ends`,
      'spec.containers[3].image: Invalid value: "b c": must not contain whitespace',
    ],
  );
});

test("ports are in range, named once, and claimed once from the host", () => {
  assert.deepEqual(
    ofContainer("ports: [{containerPort: 80, name: p}, {containerPort: 81, name: p}, {containerPort: 0}]"),
    [
      'spec.containers[0].ports[1].name: Duplicate value: "p"',
      "spec.containers[0].ports[2].containerPort: Required value",
    ],
  );
  assert.deepEqual(ofContainer("ports: [{containerPort: 80, hostPort: 8}, {containerPort: 81, hostPort: 8}]"), [
    "spec.containers[0].ports[1].hostPort: Duplicate value: 8",
  ]);
  assert.deepEqual(
    ofContainer("ports: [{containerPort: 80, hostPort: 8, protocol: UDP}, {containerPort: 81, hostPort: 8}]"),
    [],
  );
  assert.deepEqual(ofContainer("ports: [{containerPort: 80, hostPort: 81}]", "hostNetwork: true,"), [
    "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true",
  ]);
  assert.match(
    ofContainer('ports: [{containerPort: 80, name: "123", hostIP: 1.2.3}]').join("\n"),
    /one letter[^]*valid IP/u,
  );
});

test("environment variables have one source each", () => {
  assert.deepEqual(ofContainer('env: [{name: "A=B", value: x}, {name: C, valueFrom: {}}]'), [
    `spec.containers[0].env[0].name: Invalid value: "A=B": must consist of printable ASCII characters other than '='`,
    "spec.containers[0].env[1].valueFrom: Required value: must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`, `fileKeyRef`",
  ]);
  const two = "{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}, secretKeyRef: {name: s, key: k}}}";
  assert.match(ofContainer(`env: [${two}]`).join("\n"), /more than one field/u);
  assert.match(
    ofContainer("env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.phase}}}]").join("\n"),
    /Unsupported value: "status\.phase"/u,
  );
  assert.deepEqual(ofContainer(`env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a.b/c']"}}}]`), []);
  assert.match(
    ofContainer("envFrom: [{}, {configMapRef: {}}]").join("\n"),
    /must specify one of[^]*configMapRef\.name: Required value/u,
  );
});

test("quantities are valid, and requests stay within limits", () => {
  assert.deepEqual(ofContainer("resources: {requests: {cpu: 2, memory: 1Gx}, limits: {cpu: 1500m, memory: -1}}"), [
    "spec.containers[0].resources.limits.memory: Invalid value: -1: must be greater than or equal to 0",
    'spec.containers[0].resources.requests.memory: Invalid value: "1Gx": must be a quantity like 2, 500m or 64Mi',
    'spec.containers[0].resources.requests.cpu: Invalid value: "2": must be less than or equal to cpu limit of 1500m',
  ]);
  assert.match(ofContainer("resources: {limits: {gpu: 1}}").join("\n"), /must be a standard resource/u);
});

test("volumes have one source, and mounts a volume and a unique path", () => {
  const found = problems(`{volumes: [{name: v, emptyDir: {}, hostPath: {path: /}}, {name: v}],
    containers: [{name: c, image: b, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a, subPath: ../x}, {name: none, mountPath: /b}]}]}`);
  const wanted = [
    "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
    'spec.volumes[1].name: Duplicate value: "v"',
    'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
    `spec.containers[0].volumeMounts[1].subPath: Invalid value: "../x": must not contain '..'`,
    'spec.containers[0].volumeMounts[2].name: Not found: "none"',
  ];
  for (const message of wanted) assert.ok(found.includes(message), message);
});

test("contradictions are rejected", () => {
  const cases: Array<[string, RegExp]> = [
    ["hostPID: true, shareProcessNamespace: true,", /shareProcessNamespace and hostPID/u],
    ["hostnameOverride: a, hostNetwork: true,", /may not be specified when hostNetwork is true/u],
    ["dnsPolicy: None,", /at least one DNS nameserver/u],
    ["dnsConfig: {nameservers: [a], searches: [ok.example, _x.y, a..b]},", /nameservers\[0\][^]*searches\[2\]/u],
    [
      "hostNetwork: true, securityContext: {sysctls: [{name: net.core.somaxconn, value: '1'}]},",
      /'hostNetwork' is true/u,
    ],
    ["securityContext: {runAsUser: -1},", /between 0 and 2147483647/u],
    ["securityContext: {seccompProfile: {type: Localhost}},", /localhostProfile: Required value/u],
    ["hostAliases: [{ip: 1.2.3, hostnames: [A]}],", /hostAliases\[0\]\.ip[^]*hostnames\[0\]/u],
    ["tolerations: [{operator: Equal}],", /operator must be Exists when `key` is empty/u],
    ["hostname: a.b,", /spec\.hostname: Invalid value/u],
  ];
  for (const [fields, expected] of cases) assert.match(ofContainer("", fields).join("\n"), expected);
  const escalation = "securityContext: {privileged: true, allowPrivilegeEscalation: false}";
  assert.match(
    ofContainer(escalation).join("\n"),
    /cannot set `allowPrivilegeEscalation` to false and `privileged` to true/u,
  );
});

test("mount propagation and recursive read-only are limited to possible combinations", () => {
  const ofMount = (options: string): string =>
    ofContainer(`volumeMounts: [{name: v, mountPath: /m, ${options}}]`, "volumes: [{name: v, emptyDir: {}}],").join(
      "\n",
    );
  assert.equal(ofMount("mountPropagation: HostToContainer"), "");
  assert.equal(ofMount("readOnly: true, recursiveReadOnly: Enabled"), "");
  assert.match(ofMount("mountPropagation: Both"), /mountPropagation: Unsupported value/u);
  assert.match(
    ofMount("mountPropagation: Bidirectional"),
    /Forbidden: Bidirectional [^]* only to privileged containers/u,
  );
  assert.match(ofMount("recursiveReadOnly: Sometimes"), /recursiveReadOnly: Unsupported value/u);
  assert.match(ofMount("recursiveReadOnly: Enabled"), /only be specified when readOnly is true/u);
  assert.match(
    ofMount("readOnly: true, recursiveReadOnly: Enabled, mountPropagation: HostToContainer"),
    /only be specified when mountPropagation is None/u,
  );
});

test("hooks have one possible action", () => {
  const ofHook = (handler: string): string => ofContainer(`lifecycle: {preStop: ${handler}}`).join("\n");
  for (const good of [
    "{exec: {command: [a]}}",
    "{httpGet: {port: 80}}",
    "{httpGet: {port: web, scheme: HTTPS, httpHeaders: [{name: X-A, value: b}]}}",
    "{sleep: {seconds: 0}}",
    "{sleep: {seconds: 30}}",
  ]) {
    assert.equal(ofHook(good), "", good);
  }
  const bad: Array<[string, RegExp]> = [
    ["{}", /lifecycle\.preStop: Required value: must specify a handler type/u],
    ["{exec: {command: []}}", /preStop\.exec\.command: Required value/u],
    ["{exec: {command: [a]}, sleep: {seconds: 1}}", /preStop\.sleep: Forbidden: may not specify more than 1/u],
    ["{httpGet: {port: 0}}", /preStop\.httpGet\.port: Invalid value: 0/u],
    ["{httpGet: {port: UP}}", /preStop\.httpGet\.port: Invalid value: "UP"/u],
    ["{httpGet: {port: 1, scheme: ftp}}", /preStop\.httpGet\.scheme: Unsupported value: "ftp"/u],
    ['{httpGet: {port: 1, httpHeaders: [{name: "a b", value: c}]}}', /preStop\.httpGet\.httpHeaders: Invalid/u],
    ["{tcpSocket: {port: 80}}", /preStop\.tcpSocket: Forbidden: hooks are exec, httpGet or sleep/u],
    ["{sleep: {seconds: -1}}", /preStop\.sleep: Invalid value: -1: must be non-negative/u],
    ["{sleep: {seconds: 31}}", /less than terminationGracePeriodSeconds \(30\)/u],
  ];
  for (const [handler, expected] of bad) assert.match(ofHook(handler), expected);
});

test("probes have one action and possible timing", () => {
  const ofProbe = (probe: string, type = "livenessProbe"): string => ofContainer(`${type}: ${probe}`).join("\n");
  const tcp = "tcpSocket: {port: 80}";
  const bad: Array<[string, RegExp]> = [
    ["{periodSeconds: 5}", /livenessProbe: Required value: must specify a handler type/u],
    [`{${tcp}, grpc: {port: 1}}`, /livenessProbe\.grpc: Forbidden: may not specify more than 1/u],
    ["{grpc: {port: 0}}", /livenessProbe\.grpc\.port: Invalid value: 0/u],
    ["{tcpSocket: {port: web--x}}", /livenessProbe\.tcpSocket\.port: Invalid value/u],
    [`{${tcp}, periodSeconds: -1}`, /periodSeconds: Invalid value: -1: must be greater than or equal to 0/u],
    [`{${tcp}, initialDelaySeconds: -1}`, /initialDelaySeconds: Invalid value: -1/u],
    [`{${tcp}, successThreshold: 2}`, /livenessProbe\.successThreshold: Invalid value: 2: must be 1/u],
    [`{${tcp}, terminationGracePeriodSeconds: 0}`, /terminationGracePeriodSeconds: Invalid value: 0: must be greater/u],
  ];
  for (const [probe, expected] of bad) assert.match(ofProbe(probe), expected);
  assert.match(ofProbe(`{${tcp}, successThreshold: 2}`, "startupProbe"), /startupProbe\.successThreshold/u);
  assert.match(
    ofProbe(`{${tcp}, terminationGracePeriodSeconds: 5}`, "readinessProbe"),
    /readinessProbe\.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes/u,
  );
  assert.equal(ofProbe(`{${tcp}, successThreshold: 2}`, "readinessProbe"), "");
});

test("only containers that keep running are probed", () => {
  const ofInit = (policy: string): string =>
    ofContainer("", `initContainers: [{name: i, image: b, ${policy} startupProbe: {tcpSocket: {port: 1}}}],`).join(
      "\n",
    );
  assert.match(ofInit(""), /initContainers\[0\]\.startupProbe: Forbidden: may not be set for init containers without/u);
  assert.doesNotMatch(ofInit("restartPolicy: Always,"), /startupProbe/u);
  assert.match(
    ofContainer("", "ephemeralContainers: [{name: e, image: b, readinessProbe: {tcpSocket: {port: 1}}}],").join("\n"),
    /readinessProbe: Forbidden: cannot be set for an Ephemeral Container/u,
  );
});

test("a stop signal is a Linux signal, in a pod for Linux", () => {
  const ofSignal = (signal: string, fields: string): string =>
    ofContainer(`lifecycle: {stopSignal: ${signal}}`, fields).join("\n");
  for (const signal of ["SIGUSR1", "SIGRTMIN", "SIGRTMIN+15", "SIGRTMAX-14"]) {
    assert.equal(ofSignal(signal, "os: {name: linux},"), "", signal);
  }
  assert.match(ofSignal("SIGNONE", "os: {name: linux},"), /lifecycle\.stopSignal: Unsupported value: "SIGNONE"/u);
  assert.match(ofSignal("SIGUSR1", ""), /lifecycle\.stopSignal: Forbidden: may not be set .* `spec\.os\.name`/u);
});

test("only init containers that keep running have hooks", () => {
  const ofInit = (policy: string): string =>
    ofContainer(
      "",
      `initContainers: [{name: i, image: b, ${policy} lifecycle: {preStop: {sleep: {seconds: 1}}}}],`,
    ).join("\n");
  assert.match(ofInit(""), /initContainers\[0\]\.lifecycle: Forbidden: may not be set for init containers without/u);
  assert.doesNotMatch(ofInit("restartPolicy: Always,"), /lifecycle/u);
});

test("unsupported features are rejected by name, and supported ones are not", () => {
  const done = `{hostNetwork: true, hostPID: true, hostIPC: true, hostname: h, subdomain: s, dnsPolicy: Default,
    hostUsers: true, setHostnameAsFQDN: true, os: {name: linux}, affinity: {nodeAffinity: {}},
    initContainers: [{name: i, image: b}, {name: side, image: b, restartPolicy: Always}],
    activeDeadlineSeconds: 5,
    nodeSelector: {a: b}, priorityClassName: p, priority: 1, serviceAccountName: s, imagePullSecrets: [{name: s}], automountServiceAccountToken: false,
    volumes: [{name: e, emptyDir: {medium: Memory, sizeLimit: 1Mi}}, {name: g, emptyDir: {medium: HugePages-2Mi}}, {name: h, hostPath: {path: /x, type: Socket}},
      {name: c, configMap: {name: c, items: [{key: k, path: a/b, mode: 0400}]}}, {name: s, secret: {secretName: s}},
      {name: i, image: {reference: "i:1", pullPolicy: Never}},
      {name: claimed, persistentVolumeClaim: {claimName: c}},
      {name: p, projected: {sources: [{configMap: {name: c}}, {downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}]}}],
    securityContext: {runAsUser: 1, fsGroup: 2, fsGroupChangePolicy: OnRootMismatch, seLinuxChangePolicy: Recursive, supplementalGroups: [2], runAsNonRoot: true, sysctls: [{name: kernel.x, value: a}]},
    containers: [{name: c, image: b, stdin: true, tty: true, workingDir: /, terminationMessagePolicy: File,
      volumeMounts: [{name: c, mountPath: /c, readOnly: true, recursiveReadOnly: IfPossible, subPathExpr: $(A)}],
      securityContext: {capabilities: {add: [X]}, readOnlyRootFilesystem: true, procMount: Default},
      env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}],
      livenessProbe: {grpc: {port: 9, service: s}, terminationGracePeriodSeconds: 5}, startupProbe: {exec: {command: [a]}},
      readinessProbe: {httpGet: {port: web, path: "/a?b", scheme: HTTPS}, successThreshold: 3, initialDelaySeconds: 1},
      lifecycle: {postStart: {httpGet: {port: 80}}, preStop: {sleep: {seconds: 30}}, stopSignal: SIGRTMIN+3},
      resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}}]}`;
  assert.deepEqual(problems(done), []);
  const notDone: Array<[string, string]> = [
    ["volumes: [{name: v, gitRepo: {repository: r}}],", "spec.volumes[0].gitRepo"],
    ["volumes: [{name: v, azureDisk: {}}],", "spec.volumes[0].azureDisk"],
    [
      "volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}],",
      "spec.volumes[0].projected.sources[0].serviceAccountToken",
    ],
    ["runtimeClassName: kata,", "spec.runtimeClassName"],
    ["os: {name: windows},", "spec.os.name"],
  ];
  for (const [fields, path] of notDone) {
    assert.ok(
      ofContainer("", fields).some((message) => message.startsWith(`${path}: not supported: podwright `)),
      path,
    );
  }
  const inContainer: Array<[string, string]> = [
    ["resources: {limits: {example.org/gpu: 1}}", "resources.limits[example.org/gpu]"],
  ];
  for (const [fields, path] of inContainer) {
    const found = ofContainer(fields);
    assert.ok(
      found.some((message) => message.startsWith(`spec.containers[0].${path}: not supported: podwright `)),
      path,
    );
  }
});

test("ConfigMaps and Secrets have keys that are file names, and base64 where required", () => {
  const text = `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {"a/b": x, k: v}, binaryData: {k: AAAA}}
- {apiVersion: v1, kind: Secret, metadata: {name: s}, data: {k: "hunter2!"}}
`;
  const { objects } = decodeManifests(new TextEncoder().encode(text), "f");
  const messages = prepareManifests(objects).errors.map((error) => error.detail);
  assert.equal(messages.length, 3);
  assert.match(messages[0] ?? "", /must consist of letters/u);
  assert.match(messages[1] ?? "", /duplicate of key present in data/u);
  assert.equal(messages[2], "Invalid value: must be base64");
});

test("addresses are recognized", () => {
  fc.assert(fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (address) => isIpAddress(address)));
  for (const text of [
    "",
    "1.2.3",
    "1.2.3.256",
    "01.2.3.4",
    ":",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7:8:9",
    "g::",
    "fe80::1%eth0",
  ]) {
    assert.equal(isIpAddress(text), false, text);
  }
});

test("a variable from a file names an emptyDir volume, a path that stays in it, and a key", () => {
  const from = (reference: string): string[] =>
    ofContainer(
      `env: [{name: A, valueFrom: {fileKeyRef: ${reference}}}]`,
      "volumes: [{name: e, emptyDir: {}}, {name: h, hostPath: {path: /h}}],",
    ).map((problem) => problem.replace("spec.containers[0].env[0].valueFrom.fileKeyRef.", ""));
  assert.deepEqual(from("{volumeName: e, path: dir/env, key: KEY, optional: true}"), []);
  assert.deepEqual(from('{volumeName: h, path: ../env, key: "A=B"}'), [
    `key: Invalid value: "A=B": ${from('{volumeName: e, path: f, key: "A=B"}')[0]?.split(": ").at(-1) ?? ""}`,
    `path: Invalid value: "../env": must not contain '..'`,
    'volumeName: Invalid value: "h": referenced volume must be of type emptyDir',
  ]);
  assert.deepEqual(from('{volumeName: x, path: "", key: ""}'), [
    "key: Required value",
    "path: Required value",
    'volumeName: Not found: "x"',
  ]);
});

test("an SELinux policy for volumes is a known one", () => {
  assert.deepEqual(ofContainer("", "securityContext: {seLinuxChangePolicy: MountOption},"), [
    'spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"',
  ]);
});

test("readiness gates are names of conditions", () => {
  assert.deepEqual(ofContainer("", "readinessGates: [{conditionType: example.com/traffic}],"), []);
  assert.match(
    ofContainer("", "readinessGates: [{conditionType: a b}],").join("\n"),
    /^spec\.readinessGates\[0\]\.conditionType: Invalid value: "a b"/u,
  );
});
