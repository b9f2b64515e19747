import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import { MemoryFiles } from "../sim/files.ts";
import { stateOwner } from "./state-owner.ts";

test("a directory with a journal and nothing of an engine is a kubelet's", async () => {
  const files = new MemoryFiles(new ManualClock());
  const layout = runtimeLayout("/var/lib/kubelet/podwright", systemHashing);
  assert.equal(await stateOwner(files, layout), "run");
  await files.makeDirectory(layout.journal, 0o700);
  assert.equal(await stateOwner(files, layout), "kubelet");
  await files.makeDirectory(layout.manifests, 0o700);
  assert.equal(await stateOwner(files, layout), "run");
});

test("a directory that cannot be read counts as an engine's", async () => {
  const layout = runtimeLayout("/srv/pods", systemHashing);
  const stat = async (): Promise<never> => Promise.reject(new Error("permission denied"));
  assert.equal(await stateOwner({ stat }, layout), "run");
});
