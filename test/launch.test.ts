import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
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

test("without a recent Node.js the advice installs one beside this podwright, as a command that a shell takes", async () => {
  const directory = await mkdtemp(join(tmpdir(), "podwright-launch-"));
  try {
    const programs = join(directory, "programs");
    await mkdir(programs);
    for (const program of ["sed", "uname"]) await symlink(`/bin/${program}`, join(programs, program));
    await writeFile(join(programs, "npm"), `#!/bin/sh\nprintf '%s\\n' "$@"\n`, { mode: 0o755 });
    for (const [place, words] of [
      ["plain/lib/node_modules", ["--global", "--prefix", join(directory, "plain")]],
      ["it's here/lib/node_modules", ["--global", "--prefix", join(directory, "it's here")]],
      ["local/node_modules", ["--prefix", join(directory, "local")]],
      ["elsewhere", ["--global"]],
    ] as const) {
      const script = join(directory, place, "podwright/scripts/node.sh");
      await mkdir(dirname(script), { recursive: true });
      await copyFile(join(root, "scripts/node.sh"), script);
      const { status, stderr } = spawnSync("/bin/sh", [script], { env: { PATH: programs }, encoding: "utf8" });
      assert.equal(status, 3);
      const [, command = ""] = /; run: (.*)\n$/u.exec(stderr) ?? [];
      const { stdout } = spawnSync("/bin/sh", ["-c", command], { env: { PATH: programs }, encoding: "utf8" });
      const [verb, ...rest] = stdout.trim().split("\n");
      assert.equal(verb, "install", stderr);
      assert.match(rest.pop() ?? "", /^node-linux-(?:x|arm)64@26$/u);
      assert.deepEqual(rest, [...words, "--no-bin-links"]);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});

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
