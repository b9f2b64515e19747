import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemFiles } from "../linux/files/files.ts";
import { makeNodeDirectories } from "./node-directories.ts";

async function mode(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o7777).toString(8);
}

test("a node's directories are created with upstream's modes, and existing ones keep theirs", async () => {
  const base = await mkdtemp(join(tmpdir(), "podwright-directories-"));
  const umask = process.umask(0o022);
  try {
    const root = join(base, "lib/kubelet");
    const logs = join(base, "log/pods");
    await mkdir(join(base, "log"));
    await makeNodeDirectories(systemFiles, root, logs);
    const made = [root, logs, ...(await readdir(root)).toSorted().map((name) => join(root, name))];
    assert.deepEqual(
      await Promise.all(made.map(async (path) => `${path.slice(base.length + 1)} ${await mode(path)}`)),
      [
        ...["lib/kubelet 750", "log/pods 750", "lib/kubelet/plugins 750", "lib/kubelet/plugins_registry 750"],
        ...["lib/kubelet/pod-resources 750", "lib/kubelet/pods 750"],
      ],
    );
    await chmod(root, 0o755);
    await makeNodeDirectories(systemFiles, root, logs);
    assert.equal(await mode(root), "755");
  } finally {
    process.umask(umask);
    await rm(base, { recursive: true });
  }
});
