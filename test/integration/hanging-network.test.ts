import assert from "node:assert/strict";
import { chmod, mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { test } from "node:test";
import type { JournalEntry } from "../../src/journal/entry.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { findPrograms } from "../../src/private-runtime/programs.ts";
import { type KubeletNode, withKubeletNode } from "../support/kubelet-node.ts";
import { podManifest, politeSleep } from "../support/manifests.ts";
import { until } from "../support/podwright.ts";

/** More than podwright starts at a time. */
const bad = Array.from({ length: availableParallelism() + 6 }, (_, index) => `bad-${index}`);
const soonMs = 20_000;

/** Network plugins of which one hangs for some pods as long as a file is there. */
async function hangingPlugins(node: KubeletNode): Promise<{ directory: string; mark: string }> {
  const found = await findPrograms(systemFiles, []);
  assert.ok("programs" in found, "the CNI plugins are there");
  const directory = node.podwright.path("plugins");
  const mark = node.podwright.path("hang");
  await mkdir(directory);
  for (const name of await readdir(found.programs.cniPlugins)) {
    if (name !== "bridge") await symlink(`${found.programs.cniPlugins}/${name}`, `${directory}/${name}`);
  }
  await writeFile(
    `${directory}/bridge`,
    `#!/bin/sh
case "$CNI_ARGS" in
*K8S_POD_NAME=bad*) while [ -e ${mark} ]; do sleep 0.2; done ;;
esac
exec ${found.programs.cniPlugins}/bridge
`,
  );
  await chmod(`${directory}/bridge`, 0o755);
  return { directory, mark };
}

/** Waits until the runtime was called for all the pods whose network hangs. */
async function begun(node: KubeletNode, what: string, after: number): Promise<void> {
  const isOne = (entry: JournalEntry): boolean =>
    entry.seq > after && entry.what === what && entry.pod?.name.startsWith("bad-") === true;
  const pods = async (): Promise<number> =>
    new Set((await node.podwright.journal()).filter(isOne).map(({ pod }) => pod?.name)).size;
  await until(`${what} of pods whose network hangs`, async () => (await pods()) === bad.length, soonMs);
}

test("a network plugin that hangs for some pods delays neither start nor end of others", async () => {
  await withKubeletNode(async (node) => {
    const { podwright } = node;
    const { directory, mark } = await hangingPlugins(node);
    await node.startContainerdWith({ cniPlugins: directory });
    node.startKubelet();
    await node.answers();

    await writeFile(mark, "");
    for (const name of bad) await node.write(`${name}.yaml`, podManifest(name, politeSleep));
    await begun(node, "RunPodSandbox", 0);
    await node.write("good.yaml", podManifest("good", politeSleep));
    const pods = await podwright.waitFor(
      "the pod whose network works",
      (seen) => seen.some(({ name, ready }) => name === "good-node1" && ready),
      soonMs,
    );
    assert.deepEqual(
      pods.filter(({ ready }) => ready).map(({ name }) => name),
      ["good-node1"],
    );

    await rm(mark);
    await podwright.waitFor("all pods", (seen) => seen.filter(({ ready }) => ready).length === bad.length + 1);
    await writeFile(mark, "");
    const before = await podwright.lastSeq();
    for (const name of bad) await node.remove(`${name}.yaml`);
    await begun(node, "StopPodSandbox", before);
    await node.remove("good.yaml");
    const left = await podwright.waitFor(
      "the pod whose network works to be gone",
      (seen) => seen.every(({ name }) => name !== "good-node1"),
      soonMs,
    );
    assert.equal(left.length, bad.length);
    await rm(mark);
    await podwright.waitFor("all pods to be gone", (seen) => seen.length === 0);
  });
});
