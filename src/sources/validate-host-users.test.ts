import assert from "node:assert/strict";
import { test } from "node:test";
import { problems as manifestProblems } from "../../test/support/manifest-problems.ts";
import { podWith } from "../../test/support/pods.ts";
import type { PodSpec } from "../api/pod.ts";
import { validateHostUsers } from "./validate-host-users.ts";

const problems = (spec: Partial<PodSpec>): string[] =>
  [...validateHostUsers(podWith(spec).spec, ["spec"])].map(({ path, detail }) => `${path.join(".")}: ${detail}`);

test("a pod with a user namespace shares no other namespace of the node", () => {
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

test("a pod with a user namespace gets no block devices", () => {
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

test("an unmasked /proc requires a user namespace", () => {
  const container = "{name: c, image: b, securityContext: {procMount: Unmasked}}";
  assert.deepEqual(manifestProblems(`{hostUsers: false, containers: [${container}]}`), []);
  const needed = /procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`/u;
  for (const spec of ["", "hostUsers: true, "]) {
    assert.match(manifestProblems(`{${spec}containers: [${container}]}`).join("\n"), needed);
  }
});
