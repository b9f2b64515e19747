import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../api/container.ts";
import type { PodManifest } from "../api/pod.ts";
import { withDefaults } from "./defaults.ts";
import { findUnsupported } from "./unsupported.ts";
import { validatePod } from "./validate.ts";

function manifest(spec: Partial<PodManifest["spec"]>): PodManifest {
  const containers: Container[] = [{ name: "c", image: "busybox" }];
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: { containers, ...spec } };
}

function problems(spec: Partial<PodManifest["spec"]>): string[] {
  return validatePod(withDefaults(manifest(spec))).map(({ path, detail }) => `${path.join(".")}: ${detail}`);
}

function container(resources: Container["resources"], more: Partial<Container> = {}): Container {
  return { name: "c", image: "busybox", ...(resources && { resources }), ...more };
}

test("pod-level resources are supported, only for cpu, memory and huge pages", () => {
  assert.deepEqual(findUnsupported(manifest({ resources: { limits: { cpu: "1" } } })), []);
  assert.deepEqual(problems({ resources: { limits: { cpu: "1", memory: "1Gi" } } }), []);
  assert.match(problems({ resources: { limits: { "ephemeral-storage": "1Gi" } } }).join("\n"), /Unsupported value/u);
  assert.match(problems({ resources: { claims: [] } }).join("\n"), /claims may not be set/u);
});

test("a pod cannot have less than its containers, nor a container more than its pod", () => {
  const containers = [container({ requests: { cpu: "2", memory: "1Mi" }, limits: { memory: "2Gi" } })];
  const resources = { requests: { cpu: "1" }, limits: { memory: "1Gi", cpu: "4" } };
  assert.deepEqual(problems({ containers, resources }), [
    'spec.resources.requests.cpu: Invalid value: "1": must be greater than or equal to aggregate container requests of 2',
    'spec.containers.0.resources.limits.memory: Invalid value: "2Gi": must be less than or equal to pod limits of 1Gi',
  ]);
});

test("huge pages of a pod are at least those of its containers, and need cpu or memory", () => {
  const containers = [container({ limits: { cpu: "1", "hugepages-2Mi": "4Mi" } })];
  assert.match(
    problems({ containers, resources: { limits: { cpu: "1", "hugepages-2Mi": "2Mi" } } }).join("\n"),
    /aggregate container limits of 4Mi/u,
  );
  assert.deepEqual(problems({ containers: [container({ limits: { "hugepages-2Mi": "4Mi" } })] }), [
    "spec.containers.0.resources: Forbidden: HugePages require cpu or memory",
  ]);
});

test("an invalid resource name is one error, even if only requested", () => {
  for (const [name, detail] of [
    ["hugepages-foo", "must have a page size, such as hugepages-2Mi"],
    ["hugepages-1foo", "must have a page size, such as hugepages-2Mi"],
    ["hugepages-", "must have a page size, such as hugepages-2Mi"],
    ["hugepages-0", "must have a page size, such as hugepages-2Mi"],
    ["gpu", "must be a standard resource for containers, or fully qualified (example.com/name)"],
  ]) {
    for (const kind of ["limits", "requests"] as const) {
      const containers = [container({ [kind]: { [String(name)]: "2Mi" } })];
      const told = problems({ containers }).filter((problem) => kind === "requests" || !problem.includes(".requests."));
      assert.deepEqual(told, [`spec.containers.0.resources.${kind}.${name}: Invalid value: "${name}": ${detail}`]);
      assert.deepEqual(findUnsupported(manifest({ containers })), []);
    }
  }
});

test("only Kubernetes' own resources may be requested without a limit", () => {
  const requested = (name: string): string[] => problems({ containers: [container({ requests: { [name]: "1" } })] });
  assert.deepEqual([requested("cpu"), requested("kubernetes.io/gpu")], [[], []]);
  assert.match(requested("example.com/gpu").join("\n"), /limits\.example\.com\/gpu: Required value/u);
});

test("pod-level requests default from the containers, then from the pod's limits", () => {
  const containers = [
    container({ requests: { cpu: "500m" }, limits: { memory: "1Gi", cpu: "1", "hugepages-2Mi": "4Mi" } }),
  ];
  assert.deepEqual(
    withDefaults(manifest({ containers, resources: { limits: { memory: "4Gi", cpu: "2" } } })).spec.resources,
    {
      limits: { memory: "4Gi", cpu: "2", "hugepages-2Mi": "4Mi" },
      requests: { memory: "1Gi", cpu: "500m", "hugepages-2Mi": "4Mi" },
    },
  );
  assert.deepEqual(withDefaults(manifest({ resources: { limits: { cpu: "2" } } })).spec.resources?.requests, {
    cpu: "2",
  });
  assert.deepEqual(withDefaults(manifest({ resources: { requests: { cpu: "2" } } })).spec.resources, {
    requests: { cpu: "2" },
  });
});

test("an invalid quantity is reported once, and affects no other check", () => {
  const found = problems({ resources: { limits: { cpu: "lots" } }, hostname: "Not A Name" });
  assert.equal(found.filter((problem) => problem.includes("spec.resources.limits.cpu")).length, 1);
  assert.ok(found.some((problem) => problem.startsWith("spec.hostname")));
});

test("a resizePolicy names cpu and memory once each, and restarts nothing that cannot be restarted", () => {
  const policy = (...entries: [string, string][]): string[] =>
    problems({
      containers: [
        container(undefined, {
          resizePolicy: entries.map(([resourceName, restartPolicy]) => ({ resourceName, restartPolicy })),
        }),
      ],
    });
  assert.deepEqual(policy(["cpu", "NotRequired"], ["memory", "RestartContainer"]), []);
  assert.match(policy(["cpu", "NotRequired"], ["cpu", "NotRequired"]).join("\n"), /Duplicate value: "cpu"/u);
  assert.match(policy(["gpu", "NotRequired"]).join("\n"), /supported values: "cpu", "memory"/u);
  assert.match(policy(["cpu", "Sometimes"]).join("\n"), /supported values: "NotRequired", "RestartContainer"/u);
  assert.equal(policy(["", ""]).length, 2);
  const restarting = container(undefined, {
    resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }],
  });
  assert.match(
    problems({ restartPolicy: "Never", containers: [restarting] }).join("\n"),
    /must be 'NotRequired' when pod/u,
  );
  const init = { ...restarting, name: "i" };
  assert.match(problems({ initContainers: [init] }).join("\n"), /for non-sidecar initContainers/u);
  assert.deepEqual(problems({ initContainers: [{ ...init, restartPolicy: "Always" }] }), []);
});
