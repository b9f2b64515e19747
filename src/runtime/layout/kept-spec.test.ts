import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/observed.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { podUid } from "../../base/ids.ts";
import { MemoryFiles } from "../../sim/files.ts";
import { keepSpec, keptSpec } from "./kept-spec.ts";

const node = { rootDirectory: "/root" };
const path = "/root/pods/uid-1/podwright-pod.json";

async function filesWith(text?: string): Promise<MemoryFiles> {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/root/pods/uid-1", 0o750);
  if (text !== undefined) await files.write(path, text, 0o600);
  return files;
}

test("a stored pod is restored unchanged, and only root can read its file", async () => {
  const files = await filesWith();
  const sidecar = { name: "side", image: "busybox", restartPolicy: "Always" as const };
  const pod = testPod({ initContainers: [sidecar], terminationGracePeriodSeconds: 7 });
  await keepSpec(files, node, pod, "start");
  assert.deepEqual(await keptSpec(files, node, podUid("uid-1")), pod);
  assert.equal((await files.stat(path))?.mode, 0o600);
});

test("a start and the record may store a pod concurrently", async () => {
  const files = await filesWith();
  const pod = testPod({ terminationGracePeriodSeconds: 7 });
  await Promise.all([keepSpec(files, node, pod, "start"), keepSpec(files, node, pod, "record")]);
  assert.deepEqual(await keptSpec(files, node, podUid("uid-1")), pod);
});

test("a missing or truncated file, or another pod's, gives no pod", async () => {
  const other = JSON.stringify({ apiVersion: "v1", kind: "Pod", ...testPod({}, "uid-2") });
  for (const text of [undefined, "", '{"apiVersion":"v1","kind":"Pod","meta', "[]", other]) {
    assert.equal(await keptSpec(await filesWith(text), node, podUid("uid-1")), undefined, String(text));
  }
});
