import assert from "node:assert/strict";
import { test } from "node:test";
import { systemHashing } from "../linux/files/hashing.ts";
import { findContainerd, findShims } from "./containerd-process.ts";
import { runtimeLayout } from "./layout.ts";
import { FakeProcesses } from "./testing.ts";

test("containerd and shims of another container, with the same paths, are left alone", async () => {
  const layout = runtimeLayout("/state", systemHashing);
  const { config, socket } = layout.containerd;
  const both = (first: number): ConstructorParameters<typeof FakeProcesses>[0] => [
    { pid: first, name: "containerd", arguments: ["/usr/bin/containerd", "--config", config] },
    { pid: first + 1, name: "containerd-shim", arguments: ["/usr/bin/containerd-shim-runc-v2", "-address", socket] },
  ];
  const processes = new FakeProcesses([...(both(10) ?? []), ...(both(20) ?? [])]);
  for (const pid of [10, 11]) processes.elsewhere.add(pid);
  assert.deepEqual([await findContainerd(processes, layout), await findShims(processes, layout)], [20, [21]]);
  for (const pid of [20, 21]) processes.elsewhere.add(pid);
  assert.deepEqual([await findContainerd(processes, layout), await findShims(processes, layout)], [undefined, []]);
});
