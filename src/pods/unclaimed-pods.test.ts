import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { silentLog } from "../../test/support/sources.ts";
import { keepSpec } from "../runtime/layout/kept-spec.ts";
import { MemoryFiles } from "../sim/files.ts";
import { UnclaimedPods } from "./unclaimed-pods.ts";

const node = { rootDirectory: "/kubelet" };

async function filesOf(pods: Readonly<Record<string, string>>): Promise<MemoryFiles> {
  const files = new MemoryFiles(new ManualClock());
  for (const [uid, source] of Object.entries(pods)) {
    await files.makeDirectory(`/kubelet/pods/${uid}`, 0o750);
    const annotations = { "kubernetes.io/config.source": source };
    await keepSpec(files, node, podWith({ containers: [{ name: "c" }] }, { name: uid, uid, annotations }), "start");
  }
  return files;
}

test("pods of the API server that are not heard of hold what they have, until all is known", async () => {
  const files = await filesOf({ a: "api", b: "api", static: "file" });
  await files.makeDirectory("/kubelet/pods/torn", 0o750);
  await files.write("/kubelet/pods/torn/podwright-pod.json", "{", 0o600);
  const unclaimed = new UnclaimedPods({ files, node, log: silentLog });
  const names = (): string[] => unclaimed.holding((uid) => uid !== "b").map(({ metadata }) => metadata.name);
  assert.deepEqual(names(), [], "nothing was read yet");
  await Promise.all([unclaimed.load(), unclaimed.load()]);
  assert.deepEqual(names(), ["a"]);
  unclaimed.clear();
  assert.deepEqual(names(), []);
});

test("a node without pods has none, and a directory that can't be read keeps nobody waiting", async () => {
  const none = new UnclaimedPods({ files: new MemoryFiles(new ManualClock()), node, log: silentLog });
  await none.load();
  assert.deepEqual(
    none.holding(() => true),
    [],
  );
});
