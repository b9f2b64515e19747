import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeManifests } from "./decode.ts";

/** What is wrong with the form of a pod with these fields, without file and position. */
function errors(spec: string, rest = "metadata: {name: a}\n"): string[] {
  const text = `apiVersion: v1\nkind: Pod\n${rest}spec: ${spec}\n`;
  const decoded = decodeManifests(new TextEncoder().encode(text), "f");
  return decoded.errors.map(({ message }) => message.replace(/^f:\d+:\d+: /u, ""));
}

const inContainer = (fields: string): string => `{containers: [{name: c, image: i, ${fields}}]}`;
const withVolume = (source: string): string => `{volumes: [{name: v, ${source}}], containers: [{name: c, image: i}]}`;

test("a field with another name elsewhere is reported once, with its name here", () => {
  for (const [spec, wanted] of [
    [
      withVolume("secret: {name: x}"),
      'spec.volumes[0].secret.name: unknown field "name": the field is "secretName" here',
    ],
    [
      withVolume("configMap: {secretName: x}"),
      'spec.volumes[0].configMap.secretName: unknown field "secretName": the field is "name" here',
    ],
    [
      withVolume("persistentVolumeClaim: {name: x}"),
      'spec.volumes[0].persistentVolumeClaim.name: unknown field "name": the field is "claimName" here',
    ],
    [
      withVolume("projected: {sources: [{secret: {secretName: x}}]}"),
      'spec.volumes[0].projected.sources[0].secret.secretName: unknown field "secretName": the field is "name" here',
    ],
    [
      inContainer("env: [{name: A, valueFrom: {secretKeyRef: {secretName: x, key: k}}}]"),
      'spec.containers[0].env[0].valueFrom.secretKeyRef.secretName: unknown field "secretName": the field is "name" here',
    ],
    [
      inContainer("envFrom: [{configMapRef: {configMapName: x}}]"),
      'spec.containers[0].envFrom[0].configMapRef.configMapName: unknown field "configMapName": the field is "name" here',
    ],
    [
      "{imagePullSecrets: [{secretName: x}], containers: [{name: c, image: i}]}",
      'spec.imagePullSecrets[0].secretName: unknown field "secretName": the field is "name" here',
    ],
    [
      inContainer("volumeMounts: [{name: v, path: /x}]"),
      'spec.containers[0].volumeMounts[0].path: unknown field "path": the field is "mountPath" here',
    ],
    [
      inContainer("ports: [{port: 80}]"),
      'spec.containers[0].ports[0].port: unknown field "port": the field is "containerPort" here',
    ],
    [
      inContainer("env: [{name: A, valueFrom: {secret: {name: x, key: y}}}]"),
      'spec.containers[0].env[0].valueFrom.secret: unknown field "secret": the field is "secretKeyRef" here',
    ],
    [
      inContainer("envFrom: [{configMap: {name: x}}]"),
      'spec.containers[0].envFrom[0].configMap: unknown field "configMap": the field is "configMapRef" here',
    ],
    [
      inContainer("livenessProbe: {exec: {command: [a]}, interval: 3}"),
      'spec.containers[0].livenessProbe.interval: unknown field "interval": the field is "periodSeconds" here',
    ],
    [
      inContainer("livenessprobe: {}"),
      'spec.containers[0].livenessprobe: unknown field "livenessprobe"; did you mean "livenessProbe"?',
    ],
  ] as const) {
    assert.deepEqual(errors(spec), [wanted]);
  }
});

test("a misplaced field is reported with its place", () => {
  for (const [spec, wanted] of [
    ["{replicas: 3, containers: []}", "a field of controllers such as Deployments, not of pods"],
    ["{env: [], containers: []}", "it goes into each container"],
    ["{securityContext: {privileged: true}, containers: []}", "it goes into the securityContext of each container"],
    [inContainer("hostNetwork: true"), "it goes below spec, not into a container"],
    [inContainer("privileged: true"), "it goes below securityContext"],
    [inContainer("securityContext: {fsGroup: 1}"), "it goes below spec.securityContext"],
    [inContainer("resources: {cpu: 1}"), "it goes below requests or limits"],
    [inContainer("env: [{name: A, secretKeyRef: {name: x, key: y}}]"), "it goes below valueFrom"],
    [inContainer("readinessProbe: {port: 80}"), "it goes below httpGet or tcpSocket"],
  ] as const) {
    const [problem = "", ...others] = errors(spec);
    assert.ok(problem.endsWith(`: ${wanted}`), problem);
    assert.deepEqual(others, []);
  }
  assert.deepEqual(errors("{containers: []}", "metadata: {name: a}\nhostNetwork: true\nlabels: {}\n"), [
    'hostNetwork: unknown field "hostNetwork": it goes below spec',
    'labels: unknown field "labels": it goes below metadata',
  ]);
});

test("names that every object has are not fields", () => {
  assert.deepEqual(errors(inContainer("constructor: 1, toString: 2")), [
    'spec.containers[0].constructor: unknown field "constructor"',
    'spec.containers[0].toString: unknown field "toString"',
  ]);
});
