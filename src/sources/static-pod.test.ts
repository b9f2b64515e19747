import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedPods, vectorText } from "../../test/support/vectors.ts";
import { podWith } from "../../test/support/pods.ts";
import type { PodManifest } from "../api/pod.ts";
import { decodeManifests } from "./decode.ts";
import { withDefaults } from "./defaults.ts";
import { containerHash } from "../runtime/config/hash.ts";
import { matchesRunning, staticPod, staticPodUid, validateStaticPod } from "./static-pod.ts";

const place = { kind: "file", path: "/etc/kubernetes/manifests/a.yaml" } as const;

function manifestOf(text: string): PodManifest {
  const { objects, errors } = decodeManifests(new TextEncoder().encode(text), "f");
  assert.deepEqual(errors, []);
  assert.ok(objects[0]?.kind === "Pod");
  return withDefaults(objects[0].manifest);
}

for (const file of ["a.yaml", "b.yaml", "c.yaml", "d.json"]) {
  test(`the static pod of ${file} equals the Go kubelet's, except for a UID that is not given`, () => {
    const pod = staticPod(manifestOf(vectorText(`manifests/${file}`)), "node1", { kind: "file", path: `/x/${file}` });
    const recorded = recordedPods().find((candidate) => candidate.metadata.name === pod.metadata.name);
    assert.ok(recorded);
    const uid = recorded.metadata.uid;
    const { annotations, ...metadata } = pod.metadata;
    const { annotations: recordedAnnotations = {}, ...recordedMetadata } = recorded.metadata;
    const {
      "kubernetes.io/config.seen": _seen,
      "kubernetes.io/config.source": _source,
      ...expectedAnnotations
    } = recordedAnnotations;
    assert.deepEqual({ ...metadata, uid }, recordedMetadata);
    assert.deepEqual({ ...annotations, "kubernetes.io/config.hash": uid }, expectedAnnotations);
    assert.equal(annotations?.["kubernetes.io/config.hash"], pod.metadata.uid);
    assert.deepEqual(pod.spec, recorded.spec);
    if (file === "c.yaml") assert.equal(pod.metadata.uid, uid);
  });
}

test("the UID depends only on content, node and path", () => {
  const manifest = (image: string): PodManifest =>
    manifestOf(`apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: ${image}}]}`);
  const uid = staticPodUid(manifest("x"), "n", place);
  assert.match(uid, /^[0-9a-f]{32}$/u);
  assert.equal(staticPodUid(manifest("x"), "n", place), uid);
  assert.notEqual(staticPodUid(manifest("z"), "n", place), uid);
  assert.notEqual(staticPodUid(manifest("x"), "m", place), uid);
  assert.notEqual(staticPodUid(manifest("x"), "n", { ...place, path: "/other" }), uid);
  assert.notEqual(staticPodUid(manifest("x"), "n", { kind: "http", url: place.path }), uid);
});

test("only pods from files tolerate every NoExecute taint", () => {
  const manifest = manifestOf("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}");
  assert.deepEqual(staticPod(manifest, "Node1", place).spec.tolerations, [{ operator: "Exists", effect: "NoExecute" }]);
  assert.equal(staticPod(manifest, "Node1", { kind: "http", url: "http://x" }).spec.tolerations, undefined);
  assert.equal(staticPod(manifest, "Node1", place).metadata.name, "a-node1");
  assert.equal(staticPod(manifest, "Node1", place).spec.nodeName, "Node1");
});

test("a pod's own toleration of every NoExecute taint is replaced by one without a limit, others stay", () => {
  const unlimited = { operator: "Exists", effect: "NoExecute" };
  const tolerationsOf = (own: string): unknown => {
    const text = `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [], tolerations: [${own}]}}`;
    return staticPod(manifestOf(text), "n", place).spec.tolerations;
  };
  const ofKey = { ...unlimited, key: "a", tolerationSeconds: 1 };
  const own = "{operator: Exists, effect: NoExecute, tolerationSeconds: 300}";
  const other = "{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 1}";
  assert.deepEqual(tolerationsOf(`${own}, ${other}`), [unlimited, ofKey]);
  assert.deepEqual(tolerationsOf(other), [ofKey, unlimited]);
});

test("a static pod may not refer to objects of the API", () => {
  const manifest = manifestOf(`apiVersion: v1
kind: Pod
metadata: {name: ${"a".repeat(250)}}
spec:
  serviceAccountName: s
  imagePullSecrets: [{name: s}]
  volumes:
  - {name: a, configMap: {name: c}}
  - {name: b, projected: {sources: [{serviceAccountToken: {path: p}}]}}
  - {name: c, emptyDir: {}}
  - {name: d, persistentVolumeClaim: {claimName: d}}
  - {name: e, csi: {driver: d}}
  containers:
  - name: c
    env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: B, value: x}]
    envFrom: [{configMapRef: {name: c}}]
`);
  const paths = validateStaticPod(manifest, "node1").map((error) => error.path.join("."));
  assert.deepEqual(paths, [
    "spec.serviceAccountName",
    "spec.imagePullSecrets",
    "spec.containers.0.envFrom.0.configMapRef",
    "spec.containers.0.env.0.valueFrom.secretKeyRef",
    "spec.volumes.0.configMap",
    "spec.volumes.1.projected.sources.0.serviceAccountToken",
    "spec.volumes.3.persistentVolumeClaim",
    "spec.volumes.4.csi",
    "metadata.name",
  ]);
});

test("a running pod can be adopted if its newest containers match the desired ones", () => {
  const wanted = { name: "c", image: "busybox" };
  const pod = podWith({ containers: [wanted] });
  const good = { name: "c", hash: containerHash(wanted) };
  const bad = { name: "c", hash: "1" };
  assert.equal(matchesRunning(pod, { containers: [good] }), true);
  assert.equal(matchesRunning(pod, { containers: [good, bad] }), true);
  assert.equal(matchesRunning(pod, { containers: [bad, good] }), false);
  assert.equal(matchesRunning(pod, { containers: [good, { name: "other", hash: "1" }] }), false);
  assert.equal(matchesRunning(pod, { containers: [] }), false);
});
