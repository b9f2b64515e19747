import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeManifests } from "./decode.ts";
import { prepareManifests } from "./prepare.ts";

/** What is doubtful about a pod of this spec and metadata, without file and position. */
function warnings(spec: string, metadata = "{name: a}"): string[] {
  const text = `apiVersion: v1\nkind: Pod\nmetadata: ${metadata}\nspec: ${spec}\n`;
  const { objects, errors } = decodeManifests(new TextEncoder().encode(text), "f");
  assert.deepEqual(errors, []);
  const prepared = prepareManifests(objects);
  assert.deepEqual(
    prepared.errors.map(({ message }) => message),
    [],
  );
  return prepared.pods.flatMap((pod) => pod.warnings).map(({ message }) => message.replace(/^f:\d+:\d+: /u, ""));
}

const withContainer = (fields: string, more = ""): string => `{containers: [{name: c, image: i, ${fields}}]${more}}`;

test("memory in thousandths is a warning where it is written, and not where a default repeats it", () => {
  assert.deepEqual(warnings(withContainer("resources: {limits: {memory: 128m, cpu: 100m}}")), [
    'spec.containers[0].resources.limits.memory: fractional byte value "128m" is invalid, must be an integer (m stands for thousandths; did you mean 128Mi?)',
  ]);
  assert.deepEqual(warnings(withContainer('resources: {requests: {ephemeral-storage: "1.5"}}')), [
    'spec.containers[0].resources.requests.ephemeral-storage: fractional byte value "1500m" is invalid, must be an integer',
  ]);
  for (const whole of ["1.5Gi", "1E", "20000T"]) {
    assert.deepEqual(warnings(withContainer(`resources: {limits: {memory: ${whole}}}`)), [], whole);
  }
});

test("a variable that hides an earlier one is a warning, one that refers to it is not", () => {
  const env = (...values: string[]): string =>
    withContainer(`env: [${values.map((v) => `{name: A, value: "${v}"}`).join()}]`);
  const hides = 'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply';
  assert.deepEqual(warnings(env("x", "y")), [hides]);
  assert.deepEqual(warnings(env("x", "$(A)")), [hides]);
  assert.deepEqual(warnings(env("x", "$(A):y")), []);
});

test("duplicate or ambiguous ports are a warning", () => {
  const ports = (a: string, b: string): string =>
    `{containers: [{name: c, image: i, ports: [${a}]}, {name: d, image: i, ports: [${b}]}]}`;
  const at = "spec.containers[1].ports[0]: ";
  const other = "port definition with spec.containers[0].ports[0]";
  assert.deepEqual(warnings(ports("{containerPort: 80}", "{containerPort: 80}")), [`${at}duplicate ${other}`]);
  assert.deepEqual(warnings(ports("{containerPort: 80, hostPort: 8080}", "{containerPort: 80}")), [
    `${at}overlapping ${other}`,
  ]);
  assert.deepEqual(warnings(ports("{containerPort: 80}", "{containerPort: 80, protocol: UDP}")), []);
  assert.deepEqual(warnings(ports("{containerPort: 80, name: web}", "{containerPort: 81, name: web}")), [
    `${at}duplicate port name "web" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]`,
  ]);
  assert.deepEqual(warnings(withContainer("ports: [{containerPort: 80, hostIP: 127.0.0.1}]")), [
    "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:127.0.0.1}",
  ]);
});

test("labels and annotations of earlier versions are a warning with their replacement", () => {
  const terms = "[{matchExpressions: [{key: beta.kubernetes.io/arch, operator: In, values: [amd64]}]}]";
  const required = `{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: ${terms}}}`;
  const spec = withContainer(
    "",
    `, nodeSelector: {beta.kubernetes.io/os: linux}, affinity: {nodeAffinity: ${required}}`,
  );
  const annotations =
    "{seccomp.security.alpha.kubernetes.io/pod: runtime/default, container.seccomp.security.alpha.kubernetes.io/c: unconfined, scheduler.alpha.kubernetes.io/critical-pod: z}";
  assert.deepEqual(warnings(spec, `{name: a, annotations: ${annotations}}`).toSorted(), [
    'metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: non-functional in v1.27+; use the "seccompProfile" field instead',
    'metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead',
    'metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead',
    'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead',
    'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
  ]);
});

test("overlapping paths within one volume are a warning", () => {
  const volumes = (source: string): string => withContainer("", `, volumes: [{name: v, ${source}}]`);
  assert.deepEqual(warnings(volumes("configMap: {name: m, items: [{key: a, path: p}, {key: b, path: p/q}]}")), [
    'spec.volumes[0]: volume "v" (ConfigMap "m"): overlapping paths: "p/q" with "p"',
  ]);
  const sources =
    "[{configMap: {name: m, items: [{key: a, path: p/q}]}}, {secret: {name: s, items: [{key: b, path: p}]}}]";
  assert.deepEqual(warnings(volumes(`projected: {sources: ${sources}}`)), [
    'spec.volumes[0]: volume "v" (Projected): overlapping paths: "p" (Secret "s") with "p/q" (ConfigMap "m")',
  ]);
  assert.deepEqual(warnings(volumes("projected: {sources: [{}]}")), [
    'spec.volumes[0]: volume "v" (Projected) has no sources provided',
  ]);
});

test("repeated names, and addresses in a non-canonical form, are a warning", () => {
  const aliases = "[{ip: 10.0.0.1}, {ip: 10.0.0.1}, {ip: 'fd00:0::1'}]";
  assert.deepEqual(warnings(withContainer("", `, hostAliases: ${aliases}, imagePullSecrets: [{name: s}, {name: s}]`)), [
    'spec.hostAliases[1].ip: duplicate ip "10.0.0.1"',
    'spec.imagePullSecrets[1].name: duplicate name "s"',
    'spec.hostAliases[2].ip: IPv6 address "fd00:0::1" should be in RFC 5952 canonical format ("fd00::1")',
  ]);
});

test("a misspelt capability is a warning with a suggestion", () => {
  const add = "[CAP_SYSADMIN, NET-ADMIN, net_admin, all, SYSTEM_OF_A_DOWN, CAP_]";
  assert.deepEqual(warnings(withContainer(`securityContext: {capabilities: {add: ${add}}}`)), [
    ...[
      ["0", "CAP_SYSADMIN", '; did you mean "SYS_ADMIN"?'],
      ["1", "NET-ADMIN", '; did you mean "NET_ADMIN"?'],
      ["4", "SYSTEM_OF_A_DOWN", ""],
      ["5", "CAP_", ""],
    ].map(
      ([index, name, hint]) =>
        `spec.containers[0].securityContext.capabilities.add[${index}]: "${name}" is not a Linux capability; runtimes ignore or reject it${hint}`,
    ),
  ]);
});

test("the prefix CAP_ of a capability is a warning, because only podwright accepts it", () => {
  assert.deepEqual(warnings(withContainer("securityContext: {capabilities: {add: [CAP_NET_ADMIN], drop: [ALL]}}")), [
    'spec.containers[0].securityContext.capabilities.add[0]: "CAP_NET_ADMIN" is called "NET_ADMIN" in Kubernetes; podwright accepts it, the Go kubelet does not',
  ]);
});
