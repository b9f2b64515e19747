import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { MemoryFiles } from "../sim/files.ts";
import { NodeMemory } from "./node-memory.ts";

const root = "/var/lib/kubelet";

function world(): { readonly files: MemoryFiles; readonly memory: NodeMemory } {
  const files = new MemoryFiles(new ManualClock());
  return { files, memory: new NodeMemory(files, silentLog, root) };
}

describe("the node's record in the root directory", () => {
  test("is missing on a new machine: its Node's extended resources were another's, until it is registered", async () => {
    const { files, memory } = world();
    await files.makeDirectory(`${root}/podwright/run`, 0o700);
    await files.makeDirectory(`${root}/device-plugins`, 0o700);
    assert.equal(await memory.staleResources(), "all");
    await memory.registered();
    await memory.registered();
    assert.deepEqual(await memory.staleResources(), []);
  });

  test("includes a Go kubelet's, whose device plugins are no longer used", async () => {
    const { files, memory } = world();
    await files.makeDirectory(`${root}/device-plugins`, 0o700);
    await files.write(`${root}/device-plugins/kubelet.sock`, "", 0o600);
    assert.deepEqual(await memory.staleResources(), [], "it had no devices");
    const checkpoint = `${root}/device-plugins/kubelet_internal_checkpoint`;
    const data = { PodDeviceEntries: null, RegisteredDevices: { "example.org/gpu": ["0", "1"] } };
    await files.write(checkpoint, JSON.stringify({ Data: data, Checksum: 1 }), 0o600);
    assert.deepEqual(await memory.staleResources(), ["example.org/gpu"]);
    const entry = { PodUID: "p", ContainerName: "c", ResourceName: "example.org/nic", DeviceIDs: { "-1": ["a"] } };
    const given = { PodDeviceEntries: [entry, entry], RegisteredDevices: {} };
    await files.write(checkpoint, JSON.stringify({ Data: given, Checksum: 1 }), 0o600);
    assert.deepEqual(await memory.staleResources(), ["example.org/nic"]);
    await files.write(checkpoint, "{", 0o600);
    assert.deepEqual(await memory.staleResources(), []);
  });

  test("removes nothing while it is unreadable", async () => {
    const { files, memory } = world();
    await files.makeDirectory(root, 0o700);
    await files.write(`${root}/device-plugins`, "", 0o600);
    assert.deepEqual(await memory.staleResources(), []);
  });
});
