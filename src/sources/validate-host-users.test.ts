import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { PodSpec } from "../api/pod.ts";
import { validateHostUsers } from "./validate-host-users.ts";

const problems = (spec: Partial<PodSpec>): string[] =>
  [...validateHostUsers(podWith(spec).spec, ["spec"])].map(({ path, detail }) => `${path.join(".")}: ${detail}`);

test("a pod with users of its own shares none of the node's other namespaces", () => {
  const shared = { hostNetwork: true, hostPID: true, hostIPC: true };
  assert.deepEqual(problems({ hostUsers: false, ...shared }), [
    "spec.hostNetwork: Forbidden: when `hostUsers` is false",
    "spec.hostPID: Forbidden: when `hostUsers` is false",
    "spec.hostIPC: Forbidden: when `hostUsers` is false",
  ]);
  assert.deepEqual(problems({ hostUsers: true, ...shared }), []);
  assert.deepEqual(problems(shared), []);
  assert.deepEqual(problems({ hostUsers: false, hostNetwork: false }), []);
});

test("a pod with users of its own gets no block devices", () => {
  const volumeDevices = [{ name: "disk", devicePath: "/dev/disk" }];
  const spec = {
    initContainers: [{ name: "i", volumeDevices }],
    containers: [{ name: "a" }, { name: "b", volumeDevices }],
  };
  assert.deepEqual(problems({ hostUsers: false, ...spec }), [
    "spec.initContainers.0.volumeDevices: Forbidden: when `hostUsers` is false",
    "spec.containers.1.volumeDevices: Forbidden: when `hostUsers` is false",
  ]);
  assert.deepEqual(problems(spec), []);
});
