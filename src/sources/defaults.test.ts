import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import type { PodManifest } from "../api/pod.ts";
import { decodeManifests } from "./decode.ts";
import { withDefaults } from "./defaults.ts";

function decodePod(text: string): PodManifest {
  const { objects, errors } = decodeManifests(new TextEncoder().encode(text), "pod.yaml");
  assert.deepEqual(errors, []);
  assert.ok(objects[0]?.kind === "Pod");
  return objects[0].manifest;
}
const defaulted = (spec: string): PodManifest["spec"] =>
  withDefaults(decodePod(`apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: ${spec}`)).spec;

test("the image's tag determines the pull policy", () => {
  const policies: Record<string, string> = {
    busybox: "Always",
    "busybox:latest": "Always",
    "localhost:5000/busybox": "Always",
    "localhost:5000/busybox:1": "IfNotPresent",
    "busybox@sha256:0123": "IfNotPresent",
    "busybox:latest@sha256:0123": "Always",
    "busybox:1.37": "IfNotPresent",
  };
  for (const [image, policy] of Object.entries(policies)) {
    const spec = defaulted(`{containers: [{name: c, image: "${image}"}]}`);
    assert.equal(spec.containers[0]?.imagePullPolicy, policy, image);
  }
  const given = defaulted("{containers: [{name: c, image: busybox, imagePullPolicy: Never}]}");
  assert.equal(given.containers[0]?.imagePullPolicy, "Never");
});

test("unset requests default to the limits", () => {
  const spec = defaulted(
    "{containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100m}}}]}",
  );
  assert.deepEqual(spec.containers[0]?.resources?.requests, { cpu: "100m", memory: "1Gi" });
});

test("with hostNetwork, a container port is also a host port", () => {
  const containers = "containers: [{name: c, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 82}]}]";
  const host = defaulted(`{hostNetwork: true, ${containers}}`).containers[0]?.ports;
  assert.deepEqual(
    host?.map((port) => port.hostPort),
    [80, 82],
  );
  assert.deepEqual(defaulted(`{${containers}}`).containers[0]?.ports?.[0], { containerPort: 80, protocol: "TCP" });
});

test("probes, hooks, references and volumes get the API's defaults", () => {
  const spec = defaulted(`
  volumes:
  - {name: nothing}
  - {name: c, configMap: {name: x}}
  - {name: h, hostPath: {path: /x}}
  - {name: p, projected: {sources: [{serviceAccountToken: {path: t}}, {downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]}}
  containers:
  - name: c
    readinessProbe: {httpGet: {port: 80}, periodSeconds: 5}
    livenessProbe: {grpc: {port: 1}}
    lifecycle: {preStop: {httpGet: {port: 1, path: /x}}, postStart: {exec: {command: [a]}}}
    env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
`);
  const [container] = spec.containers;
  assert.deepEqual(container?.readinessProbe, {
    httpGet: { port: 80, path: "/", scheme: "HTTP" },
    periodSeconds: 5,
    timeoutSeconds: 1,
    successThreshold: 1,
    failureThreshold: 3,
  });
  assert.equal(container.livenessProbe?.grpc?.service, "");
  assert.equal(container.lifecycle?.preStop?.httpGet?.scheme, "HTTP");
  assert.equal(container.env?.[0]?.valueFrom?.fieldRef?.apiVersion, "v1");
  assert.deepEqual(spec.volumes?.slice(0, 3), [
    { name: "nothing", emptyDir: {} },
    { name: "c", configMap: { name: "x", defaultMode: 0o644 } },
    { name: "h", hostPath: { path: "/x", type: "" } },
  ]);
  const projected = spec.volumes[3]?.projected;
  assert.equal(projected?.sources?.[0]?.serviceAccountToken?.expirationSeconds, 3600);
  assert.equal(projected.sources[1]?.downwardAPI?.items?.[0]?.fieldRef?.apiVersion, "v1");
});

test("defaulting is idempotent, and changes no given value", () => {
  const spec = fc.record(
    {
      restartPolicy: fc.constantFrom("Always", "OnFailure", "Never"),
      hostNetwork: fc.boolean(),
      terminationGracePeriodSeconds: fc.nat(100),
      containers: fc.array(
        fc.record(
          {
            name: fc.constantFrom("a", "b"),
            image: fc.constantFrom("x", "x:1"),
            ports: fc.array(fc.record({ containerPort: fc.nat(100) }, { noNullPrototype: true }), { maxLength: 2 }),
            livenessProbe: fc.record({ periodSeconds: fc.nat(9) }, { requiredKeys: [], noNullPrototype: true }),
          },
          { requiredKeys: ["name"], noNullPrototype: true },
        ),
        { maxLength: 3 },
      ),
    },
    { requiredKeys: ["containers"], noNullPrototype: true },
  );
  fc.assert(
    fc.property(spec, (given) => {
      const before = structuredClone(given);
      const once = withDefaults({ apiVersion: "v1", kind: "Pod", metadata: {}, spec: given });
      assert.deepEqual(withDefaults(once), once);
      assert.deepEqual(given, before);
    }),
    { numRuns: 100 },
  );
});

test("null is zero in a map of quantities", () => {
  const spec = defaulted("{containers: [{name: c, image: b, resources: {limits: {cpu: null, memory: ' 1Gi '}}}]}");
  assert.deepEqual(spec.containers[0]?.resources, {
    limits: { cpu: "0", memory: "1Gi" },
    requests: { cpu: "0", memory: "1Gi" },
  });
});

test("a negative grace period becomes the minimum", () => {
  assert.equal(defaulted("{terminationGracePeriodSeconds: -1, containers: []}").terminationGracePeriodSeconds, 1);
  assert.equal(defaulted("{terminationGracePeriodSeconds: 0, containers: []}").terminationGracePeriodSeconds, 0);
});

test("amounts have the API's precision: thousandths, rounded up", () => {
  // Recorded from Kubernetes 1.36.2's own defaulting.
  const recorded = {
    "0.1m": "1m",
    "1.0005": "1001m",
    "100u": "1m",
    "1n": "1m",
    "1e-7": "1e-3",
    "1500u": "2m",
  };
  for (const [written, amount] of Object.entries(recorded)) {
    const resources = `resources: {limits: {memory: '${written}'}}`;
    const spec = defaulted(`{${resources}, overhead: {cpu: '${written}'}, containers: [{name: c, ${resources}}]}`);
    const both = { limits: { memory: amount }, requests: { memory: amount } };
    assert.deepEqual(spec.containers[0]?.resources, both);
    assert.deepEqual([spec.resources?.limits, spec.overhead], [{ memory: amount }, { cpu: amount }]);
  }
});
