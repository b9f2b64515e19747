import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podUid } from "../../base/ids.ts";
import type { Pod } from "../../api/pod.ts";
import { podDifferences, podText } from "./pod-text.ts";

const pod: Pod = {
  metadata: { name: "web", namespace: "default", uid: podUid("uid-1") },
  spec: {
    restartPolicy: "Never",
    dnsPolicy: "ClusterFirst",
    securityContext: {},
    volumes: [{ name: "disk", emptyDir: {} }],
    initContainers: [{ name: "i0", image: "busybox", command: ["sim", "exit", "0", "10"] }],
    containers: [
      { name: "c0", image: "busybox", imagePullPolicy: "IfNotPresent", resources: { limits: { cpu: "1" } } },
      { name: "c1", image: "large:1", imagePullPolicy: "Never", resources: {} },
    ],
  },
};

describe("a pod in a report", () => {
  test("is described without common features", () => {
    assert.deepEqual(podText(pod).split("\n"), [
      "web (uid-1): restartPolicy Never, volumes [{name disk, emptyDir {}}]",
      "init container i0: sim exit 0 10, image busybox",
      "container c0: image busybox, resources {limits {cpu 1}}",
      "container c1: image large:1, imagePullPolicy Never",
    ]);
  });

  test("is described by its differences after a change", () => {
    const [first, second] = pod.spec.containers;
    assert.ok(first && second);
    const containers = [
      { ...first, resources: { limits: { cpu: "2" } } },
      { ...second, image: "busybox" },
    ];
    const metadata = { ...pod.metadata, generation: 2, labels: { version: "7" } };
    assert.deepEqual(podDifferences(pod, { metadata, spec: { ...pod.spec, containers } }), [
      "labels: none → {version 7}",
      "containers[0].resources.limits.cpu: 1 → 2",
      "containers[1].image: large:1 → busybox",
    ]);
    assert.deepEqual(podDifferences(pod, pod), []);
  });
});
