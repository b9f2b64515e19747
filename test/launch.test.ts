import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { mallocSettings, nodeFlags } from "../scripts/launch.ts";

const root = dirname(import.meta.dirname);

test("tests and benches start a node as bin/podwright does", async () => {
  const text = await readFile(join(root, "bin/podwright"), "utf8");
  assert.deepEqual(/^set -- (--.*) "\$entry"/m.exec(text)?.[1]?.split(" "), [...nodeFlags]);
  const settings = [...text.matchAll(/(MALLOC_\w+)="\$\{\1:-(\d+)\}"/g)].map(([, name, value]) => [name, value]);
  assert.deepEqual(Object.fromEntries(settings), mallocSettings);
});

async function output(program: string, arguments_: readonly string[], path?: string): Promise<string> {
  const env = { ...process.env, ...(path !== undefined && { PATH: `${path}:${process.env["PATH"]}` }) };
  return (await promisify(execFile)(program, arguments_, { env })).stdout;
}

test("called by the name kubelet, podwright is one, and prints the version in kubeadm's format", async () => {
  const directory = await mkdtemp(join(tmpdir(), "podwright-launch-"));
  try {
    // The sources as they are now, and no bundle of an earlier build.
    for (const part of ["scripts", "src", "node_modules"]) await symlink(join(root, part), join(directory, part));
    const launcher = join(directory, "bin/podwright");
    await mkdir(dirname(launcher));
    await copyFile(join(root, "bin/podwright"), launcher);
    const [link, copy, entry] = [
      join(directory, "kubelet"),
      join(directory, "usr/sbin/kubelet"),
      join(directory, "js/kubelet"),
    ];
    for (const parent of [copy, entry]) await mkdir(dirname(parent), { recursive: true });
    await symlink(launcher, link);
    await symlink(launcher, join(directory, "podwright"));
    await copyFile(launcher, copy);
    await symlink(join(root, "src/cli/main.ts"), entry);
    const version = "Kubernetes v1.36.2\n";
    assert.equal(await output(link, ["--version"]), version);
    assert.equal(await output("kubelet", ["--version"], directory), version, "through PATH");
    assert.equal(await output(copy, ["--version"], directory), version, "a copy, beside podwright in PATH");
    assert.equal(await output(process.execPath, [entry, "--version"]), version, "a link to the program itself");
    assert.match(await output(launcher, ["--version"]), /^podwright /u);
    await assert.rejects(output(copy, ["--version"]), /make it a symbolic link to bin\/podwright/u);
  } finally {
    await rm(directory, { recursive: true });
  }
});
