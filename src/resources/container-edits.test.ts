import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { type ContainerEdits, EditConflictError, mergeEdits } from "./container-edits.ts";
import { editorOf } from "./resource-manager.ts";

const device = (containerPath: string) => ({ containerPath, hostPath: containerPath, permissions: "rw" });
const merged = (...all: readonly ContainerEdits[]): ContainerEdits =>
  mergeEdits(all.map((edits, index) => ({ manager: `manager ${index}`, edits })));

test("without managers there are no edits, with one its own", () => {
  assert.deepEqual(merged(), {});
  const edits: ContainerEdits = { resources: { cpusetCpus: "0" } };
  assert.equal(merged(edits), edits);
});

test("edits of several managers are merged", () => {
  const cpus: ContainerEdits = { resources: { cpusetCpus: "2-3", unified: { "memory.min": "1" } } };
  const memory: ContainerEdits = {
    resources: {
      cpusetMems: "0",
      unified: { "memory.oom.group": "1" },
      hugepageLimits: [{ pageSize: "2MB", limit: 0n }],
    },
  };
  const devices: ContainerEdits = { devices: [device("/dev/a")], annotations: { a: "1" } };
  const more: ContainerEdits = { devices: [device("/dev/b")], annotations: { b: "1" } };
  const all = merged(cpus, memory, devices, more);
  assert.deepEqual(all.resources, {
    cpusetCpus: "2-3",
    cpusetMems: "0",
    unified: { "memory.min": "1", "memory.oom.group": "1" },
    hugepageLimits: [{ pageSize: "2MB", limit: 0n }],
  });
  assert.deepEqual(all.devices, [device("/dev/a"), device("/dev/b")]);
  assert.deepEqual(all.annotations, { a: "1", b: "1" });
});

test("two managers that set the same thing are an error that names both and the thing", () => {
  const conflicts: readonly (readonly [ContainerEdits, string])[] = [
    [{ resources: { cpusetCpus: "0" } }, "cpusetCpus"],
    [{ resources: { unified: { "memory.max": "1" } } }, "cgroup value memory.max"],
    [{ resources: { hugepageLimits: [{ pageSize: "2MB", limit: 1n }] } }, "the limit of huge pages of 2MB"],
    [{ devices: [device("/dev/a")] }, "device /dev/a"],
    [{ cdiDevices: [{ name: "v/c=0" }] }, "CDI device v/c=0"],
    [{ mounts: [{ containerPath: "/m", hostPath: "/h" }] }, "a mount at /m"],
    [{ environment: [{ name: "A", value: new Uint8Array() }] }, "variable A"],
    [{ annotations: { a: "" } }, "annotation a"],
  ];
  for (const [edits, what] of conflicts) {
    assert.throws(() => merged(edits, {}, edits), new EditConflictError(what, ["manager 0", "manager 2"]));
  }
});

test("a container is edited by all managers of the node", () => {
  const pod = podWith({ containers: [containerWith("c", undefined)] });
  const [container] = pod.spec.containers;
  assert.ok(container);
  const editor = editorOf([
    { name: "pod", edits: ({ metadata }) => ({ annotations: { pod: metadata.name } }) },
    { name: "container", edits: (_, { name }) => ({ annotations: { container: name } }) },
  ]);
  assert.deepEqual(editor.edits(pod, container).annotations, { pod: pod.metadata.name, container: "c" });
});
