import assert from "node:assert/strict";
import { test } from "node:test";
import { problems } from "../../test/support/manifest-problems.ts";
import { staticPodsOf } from "./static-manifests.ts";

const withEphemeral = (...fields: readonly string[]): string[] =>
  problems(
    `{volumes: [{name: v}], containers: [{name: c, image: b}], ephemeralContainers: [${fields.map((field) => `{name: d, image: b, ${field}}`).join(", ")}]}`,
  );

test("an ephemeral container may have a target, variables, mounts and a security context", () => {
  assert.deepEqual(
    withEphemeral(
      "targetContainerName: c, env: [{name: A, value: b}], volumeMounts: [{name: v, mountPath: /v}], stdin: true, " +
        "ports: [], resources: {}, securityContext: {capabilities: {add: [SYS_PTRACE]}}",
    ),
    [],
  );
});

test("an ephemeral container's target must be a container of the pod", () => {
  assert.deepEqual(withEphemeral("targetContainerName: d"), [
    'spec.ephemeralContainers[0].targetContainerName: Not found: "d"',
  ]);
});

test("an ephemeral container has no fields that only a service needs", () => {
  const forbidden = "Forbidden: cannot be set for an Ephemeral Container";
  const fields = {
    ports: "ports: [{containerPort: 1}]",
    resources: "resources: {limits: {cpu: 1}}",
    restartPolicy: "restartPolicy: Always",
    restartPolicyRules: "restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]",
    lifecycle: "lifecycle: {preStop: {sleep: {seconds: 1}}}",
    livenessProbe: "livenessProbe: {exec: {command: [x]}}",
    "volumeMounts[0].subPath": "volumeMounts: [{name: v, mountPath: /v, subPath: s}]",
    "volumeMounts[0].subPathExpr": "volumeMounts: [{name: v, mountPath: /v, subPathExpr: s}]",
  };
  for (const [name, field] of Object.entries(fields)) {
    assert.deepEqual(withEphemeral(field), [`spec.ephemeralContainers[0].${name}: ${forbidden}`]);
  }
});

test("an unsupported field is also unsupported in an ephemeral container", () => {
  assert.match(withEphemeral("securityContext: {windowsOptions: {}}").join(), /not supported: podwright/u);
});

test("a static pod has no ephemeral containers: a changed manifest is another pod", () => {
  const text =
    "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: b}], ephemeralContainers: [{name: d, image: b}]}}";
  const place = { kind: "file", path: "/a.yaml" } as const;
  const { pods, errors } = staticPodsOf(new TextEncoder().encode(text), "/a.yaml", place, "node1");
  assert.deepEqual(pods, []);
  assert.match(errors.join("\n"), /Forbidden: static pods do not support ephemeral containers/u);
});
