import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { nodeFlags } from "../../scripts/launch.ts";
import { version } from "../../src/base/version.ts";
import { engineUnit, kubeletDropIn, unitMark } from "../../src/cli/service-units.ts";
import { until } from "../support/podwright.ts";

const root = join(import.meta.dirname, "../..");
const run = promisify(execFile);
/** Programs use the cache beside them, not that of the tests. */
const withOwnCache = { ...process.env, NODE_COMPILE_CACHE: undefined };
let directory = "";
let file = "";

/** A package with a small program in the place of Node.js, which takes a minute to pack. */
async function build(out: string): Promise<string> {
  const words = [join(root, "scripts/deb.ts"), "--out", join(directory, out), "--node", "/bin/true"];
  const env = { ...process.env, SOURCE_DATE_EPOCH: "1800000000" };
  return (await run(process.execPath, words, { cwd: directory, env })).stdout.trim();
}

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "podwright-deb-test-"));
  file = await build("one");
});

after(async () => rm(directory, { recursive: true, force: true }));

test("equal sources give equal bytes", async () => {
  const again = await build("two");
  assert.ok((await readFile(file)).equals(await readFile(again)));
});

test("what Node.js compiles at the clone after the build is not packed", async () => {
  const { stdout: built } = await run("dpkg-deb", ["--contents", file]);
  // With other flags of V8 than at the build.
  const words = ["--stack-size=900", join(root, "dist/podwright.js"), "explain", "BackOff"];
  await run(process.execPath, words, { env: withOwnCache });
  assert.equal((await readdir(join(root, "dist/compile-cache"))).length, 2);
  const { stdout: contents } = await run("dpkg-deb", ["--contents", await build("three")]);
  assert.equal(contents, built);
});

test("bundles with their compiled code are equal in each directory, and none holds its path", async () => {
  const digests = async (name: string): Promise<string> => {
    await run(process.execPath, [join(root, "scripts/build.ts"), join(directory, name, "dist")]);
    const list = "find . -type f -exec sha256sum {} + | sort -k 2";
    return (await run("sh", ["-c", list], { cwd: join(directory, name) })).stdout;
  };
  const first = await digests("a");
  assert.match(first, /dist\/compile-cache\/v/u);
  assert.equal(await digests("b"), first);
  await assert.rejects(run("grep", ["-rlF", directory, join(directory, "a")]), { code: 1 });
});

test("compiled code is used at another place", async () => {
  const moved = join(directory, "moved/elsewhere");
  await mkdir(moved, { recursive: true });
  await run("dpkg-deb", ["--extract", file, moved]);
  const env = { ...withOwnCache, NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
  const program = join(moved, "usr/lib/podwright/dist/podwright.js");
  const { stderr } = await run(process.execPath, [...nodeFlags, program, "explain", "BackOff"], { env });
  assert.match(stderr, /moved\/elsewhere\/\S*chunk-\w+\.js was accepted/u);
  assert.doesNotMatch(stderr, /was rejected/u);
});

test("an interrupted build leaves no package and no temporary directory", async () => {
  const temporary = join(directory, "temporary");
  const out = join(directory, "interrupted");
  for (const path of [temporary, out]) await mkdir(path);
  const words = [join(root, "scripts/deb.ts"), "--out", out, "--node", process.execPath];
  const building = spawn(process.execPath, words, { env: { ...process.env, TMPDIR: temporary }, stdio: "ignore" });
  const ended = once(building, "exit");
  await until("the packing", async () => (await readdir(out)).length > 0);
  building.kill("SIGTERM");
  assert.deepEqual(await ended, [null, "SIGTERM"]);
  assert.deepEqual(await readdir(out), []);
  assert.deepEqual(await readdir(temporary), []);
});

test("it contains the program, its own Node.js, the man page and completions, owned by root, and depends on a runtime", async () => {
  const { stdout: contents } = await run("dpkg-deb", ["--contents", file]);
  for (const path of [
    "./usr/bin/podwright -> ../lib/podwright/bin/podwright",
    "./usr/lib/podwright/dist/podwright.js",
    "./usr/lib/podwright/node_modules/node/bin/node",
    "./usr/lib/podwright/examples/hello.yaml",
    "./usr/share/man/man1/podwright.1.gz",
    "./usr/share/bash-completion/completions/podwright",
    "./usr/share/doc/podwright/copyright",
  ]) {
    assert.ok(contents.includes(`${path}\n`), path);
  }
  const lines = contents.trim().split("\n");
  assert.deepEqual(
    lines.filter((line) => !/^[dl-][rwx-]{9} root\/root /u.test(line)),
    [],
  );
  assert.doesNotMatch(contents, /\.\/(?:etc|var)\/|\.service\b|dist\/(?:files\.txt|packages\.json)/u);
  const { stdout: depends } = await run("dpkg-deb", ["--field", file, "Depends"]);
  for (const name of ["containerd", "runc", "containernetworking-plugins", "iptables", "catatonit", "busybox-static"]) {
    assert.match(depends, new RegExp(`\\b${name}\\b`, "u"));
  }
});

/** dpkg on a root directory of its own, whose scripts know that by DPKG_ROOT. */
async function dpkg(words: readonly string[]): Promise<void> {
  const admin = join(directory, "root/var/lib/dpkg");
  if (!existsSync(admin)) {
    for (const name of ["info", "updates", "triggers"]) await mkdir(join(admin, name), { recursive: true });
    await writeFile(join(admin, "status"), "");
  }
  const force = ["--force-script-chrootless", "--force-depends", `--log=${join(directory, "dpkg.log")}`];
  await run("dpkg", [`--root=${join(directory, "root")}`, ...force, ...words]);
}

test("installation starts nothing, removal keeps state and units but no join, purging removes its own files only", async () => {
  const inRoot = (path: string): string => join(directory, "root", path);
  await dpkg(["--install", file]);
  assert.ok(existsSync(inRoot("usr/lib/podwright/dist/podwright.js")));
  assert.equal(existsSync(inRoot("etc/systemd/system")), false);
  const places = {
    manifests: "/etc/podwright/manifests",
    units: "",
    booted: "",
    launcher: "/usr/lib/podwright/bin/podwright",
  };
  const made: Readonly<Record<string, string>> = {
    "etc/systemd/system/podwright.service": `${unitMark}\n${engineUnit(places, "/var/lib/podwright")}`,
    "etc/systemd/system/podwright-kubelet.service": "[Service]\nExecStart=/opt/mine\n",
    "etc/podwright/manifests/web.yaml": "kind: Pod\n",
    "var/lib/podwright/journal/journal-1.jsonl": "{}\n",
    "etc/systemd/system/kubelet.service.d/10-mine.conf": "[Service]\n",
    "etc/systemd/system/kubelet.service.d/90-podwright.conf": `${unitMark}\n${kubeletDropIn(places, "")}`,
    "var/lib/kubelet/config.yaml": "kind: KubeletConfiguration\n",
    "var/lib/kubelet/podwright/journal/journal-1.jsonl": "{}\n",
    // What Node.js compiles while it runs.
    "usr/lib/podwright/dist/compile-cache/new": "",
  };
  for (const [path, text] of Object.entries(made)) {
    await mkdir(join(inRoot(path), ".."), { recursive: true });
    await writeFile(inRoot(path), text);
  }
  await dpkg(["--remove", "podwright"]);
  assert.equal(existsSync(inRoot("usr/lib/podwright")), false);
  const gone = Object.keys(made).filter((path) => !existsSync(inRoot(path)));
  // A node's earlier kubelet is back: a drop-in without its program would leave it none.
  const ofJoin = "etc/systemd/system/kubelet.service.d/90-podwright.conf";
  assert.deepEqual(gone, [ofJoin, "usr/lib/podwright/dist/compile-cache/new"]);
  await dpkg(["--purge", "podwright"]);
  const left = Object.keys(made).filter((path) => existsSync(inRoot(path)));
  assert.deepEqual(left, [
    "etc/systemd/system/podwright-kubelet.service",
    "etc/systemd/system/kubelet.service.d/10-mine.conf",
    "var/lib/kubelet/config.yaml",
  ]);
  assert.equal(existsSync(inRoot("etc/podwright")), false);
  assert.equal(existsSync(inRoot("var/lib/podwright")), false);
});

test("the unpacked program runs with its own Node.js", async () => {
  const unpacked = join(directory, "unpacked");
  await run("dpkg-deb", ["--extract", file, unpacked]);
  const node = join(unpacked, "usr/lib/podwright/node_modules/node/bin/node");
  await copyFile(process.execPath, node);
  await chmod(node, 0o755);
  const env = { PATH: "/usr/bin:/bin" };
  const { stdout } = await run(join(unpacked, "usr/bin/podwright"), ["--version"], { env });
  assert.equal(stdout, `podwright ${version}\n`);
});
