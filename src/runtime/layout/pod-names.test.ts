import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { testPod } from "../../../test/support/observed.ts";
import { MemoryFiles } from "../../sim/files.ts";
import { isCopyOfPod } from "./pod-names.ts";

const node = { rootDirectory: "/root" };
const uid = "7b2c44f0-27a9-4d0a-9b4e-0a1b2c3d4e5f";

/** Of a directory in which the spec of a pod is stored, if any. */
async function isCopy(name: string, kept?: string): Promise<boolean> {
  const files = new MemoryFiles(new ManualClock());
  const directory = `/root/pods/${name}`;
  await files.makeDirectory(directory, 0o750);
  const text = JSON.stringify({ apiVersion: "v1", kind: "Pod", ...testPod({}, kept) });
  if (kept !== undefined) await files.write(`${directory}/podwright-pod.json`, text, 0o600);
  return await isCopyOfPod(files, node, name);
}

test("a directory is a copy by the stored spec of another pod", async () => {
  for (const name of ["custom.bak", `${uid}.bak`, "0".repeat(32)]) {
    assert.equal(await isCopy(name, "custom"), true, name);
  }
});

test("a directory without a spec is a copy if its name is one around a UID of the usual form", async () => {
  assert.equal(await isCopy(`${uid}.bak`), true);
  for (const name of [uid, "custom", "custom.bak"]) assert.equal(await isCopy(name), false, name);
});

test("a recorded pod's directory is no copy, even if its UID has the form of a copy's name", async () => {
  for (const name of [uid, "custom", `web-${uid}`, "0".repeat(64)]) assert.equal(await isCopy(name, name), false, name);
});
