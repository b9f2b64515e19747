import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { isGivenToGroup } from "../../ports/volume-files.ts";
import { needsRoot, testDirectory } from "../processes/testing.ts";
import { systemVolumeFiles } from "./volume-files.ts";

const gid = 4321;
const access = { gid, readOnly: false, onlyOnRootMismatch: false };

test("kind resolves links", async () => {
  using directory = testDirectory();
  writeFileSync(directory.join("file"), "");
  symlinkSync("file", directory.join("link"));
  symlinkSync("nowhere", directory.join("dangling"));
  await using server = createServer().listen(directory.join("socket"));
  await new Promise((done) => server.once("listening", done));
  assert.equal(await systemVolumeFiles.kind(directory.path), "directory");
  assert.equal(await systemVolumeFiles.kind(directory.join("link")), "file");
  assert.equal(await systemVolumeFiles.kind(directory.join("socket")), "socket");
  assert.equal(await systemVolumeFiles.kind("/dev/null"), "characterDevice");
  assert.equal(await systemVolumeFiles.kind(directory.join("dangling")), undefined);
  assert.equal(await systemVolumeFiles.kind(directory.join("file/below")), undefined);
});

test("openBeneath holds the object itself, whatever is renamed afterwards", async () => {
  using directory = testDirectory();
  mkdirSync(directory.join("v/a/b"), { recursive: true });
  writeFileSync(directory.join("v/a/b/mark"), "inside");
  await using opened = await systemVolumeFiles.openBeneath(directory.join("v"), "a/b");
  renameSync(directory.join("v/a"), directory.join("v/moved"));
  symlinkSync("/etc", directory.join("v/a"));
  assert.equal(opened.isDirectory, true);
  assert.equal(opened.inode, lstatSync(directory.join("v/moved/b")).ino);
  assert.equal(readFileSync(`${opened.mountSource}/mark`, "utf8"), "inside");
});

test("what the kernel mounts on first access is mounted, and its own directories are opened", async (t) => {
  if (needsRoot() !== false) return t.skip("needs root");
  using directory = testDirectory();
  const volume = directory.join("v");
  mkdirSync(volume);
  // The only automount that needs no server: a debugfs mounts a tracefs at its directory `tracing`.
  try {
    execFileSync("mount", ["-t", "debugfs", "debugfs", volume], { stdio: "pipe" });
  } catch {
    return t.skip("no debugfs can be mounted");
  }
  try {
    if (!existsSync(`${volume}/tracing`)) return t.skip("the kernel's debugfs has no automount");
    for (const path of ["tracing", "tracing/events"]) {
      {
        await using opened = await systemVolumeFiles.openBeneath(volume, path);
        assert.notEqual(opened.device, lstatSync(volume).dev, path);
      }
      execFileSync("umount", [`${volume}/tracing`]);
    }
  } finally {
    execFileSync("umount", ["--recursive", volume]);
  }
});

test("links inside a volume are followed while they stay inside", async () => {
  using directory = testDirectory();
  const volume = directory.join("v");
  mkdirSync(`${volume}/gen/deep`, { recursive: true });
  mkdirSync(`${volume}/dir`);
  writeFileSync(`${volume}/gen/key`, "value");
  symlinkSync("gen", `${volume}/..data`);
  symlinkSync("..data/key", `${volume}/key`);
  symlinkSync("../gen/deep/../key", `${volume}/dir/roundabout`);
  symlinkSync(`${realpathSync(volume)}/gen`, `${volume}/absolute`);
  for (const path of ["key", "dir/roundabout", "absolute/key", "./gen//key"]) {
    await using opened = await systemVolumeFiles.openBeneath(volume, path);
    assert.equal(opened.isDirectory, false);
    assert.equal(opened.inode, statSync(`${volume}/gen/key`).ino, path);
  }
});

test("links that lead out of the volume, in circles or nowhere are rejected, and nothing is created there", async () => {
  using directory = testDirectory();
  const volume = directory.join("v");
  mkdirSync(`${volume}/dir`, { recursive: true });
  symlinkSync("/etc", `${volume}/absolute`);
  symlinkSync("..", `${volume}/up`);
  symlinkSync("../../v/dir", `${volume}/dir/out-and-in`);
  symlinkSync(`${volume}-sibling`, `${volume}/sibling`);
  symlinkSync("circle", `${volume}/circle`);
  symlinkSync("nothing", `${volume}/dangling`);
  mkdirSync(`${volume}-sibling`);
  const before = readdirSync(directory.path);
  for (const path of ["absolute", "absolute/new", "up/new", "dir/out-and-in", "sibling", "dir/../.."]) {
    await assert.rejects(systemVolumeFiles.openBeneath(volume, path), { code: "EXDEV" }, path);
  }
  await assert.rejects(systemVolumeFiles.openBeneath(volume, "circle"), { code: "ELOOP" });
  await assert.rejects(systemVolumeFiles.openBeneath(volume, "dangling/x"), { code: "ENOENT" });
  assert.deepEqual(readdirSync(directory.path), before);
  assert.equal(existsSync(`${volume}/nothing`), false);
});

test("missing directories get the permissions of the volume's top directory, whatever the umask", async () => {
  using directory = testDirectory();
  const volume = directory.join("v");
  mkdirSync(volume);
  chmodSync(volume, 0o2777);
  await using opened = await systemVolumeFiles.openBeneath(volume, "new/part");
  assert.equal(opened.isDirectory, true);
  for (const path of ["new", "new/part"]) assert.equal(lstatSync(`${volume}/${path}`).mode & 0o7777, 0o2777);
  await using _again = await systemVolumeFiles.openBeneath(volume, "new/part");
});

test("a pipe or a device is opened without blocking", { skip: needsRoot() }, async () => {
  using directory = testDirectory();
  execFileSync("mkfifo", [directory.join("pipe")]);
  await using opened = await systemVolumeFiles.openBeneath(directory.path, "pipe");
  assert.equal(opened.isDirectory, false);
  await assert.rejects(systemVolumeFiles.openBeneath(directory.path, "pipe/x"), { code: "ENOTDIR" });
});

test("repeatedly swapping a directory for a link to the node never exposes the node", async () => {
  using directory = testDirectory();
  const volume = directory.join("v");
  mkdirSync(`${volume}/dir/sub`, { recursive: true });
  mkdirSync(directory.join("secret/sub"), { recursive: true });
  writeFileSync(directory.join("secret/sub/mark"), "the node's");
  symlinkSync(directory.join("secret"), `${volume}/link`);
  const worker = new Worker(exchangeLoop, { eval: true, workerData: volume });
  await new Promise((done) => worker.once("message", done));
  const outcomes = { inside: 0, refused: 0 };
  try {
    for (let round = 0; round < 2000; round++) {
      try {
        await using opened = await systemVolumeFiles.openBeneath(volume, "dir/sub/part");
        assert.equal(existsSync(`${opened.mountSource}/../mark`), false, "it must not be the node's");
        outcomes.inside++;
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        outcomes.refused++;
      }
    }
  } finally {
    await worker.terminate();
  }
  assert.deepEqual(readdirSync(directory.join("secret/sub")), ["mark"], "nothing was made outside");
  assert.ok(outcomes.inside > 0 && outcomes.refused > 0, `the loop got in between: ${JSON.stringify(outcomes)}`);
});

/** Swaps the directory and the link as fast as it can; files created by the walk meanwhile are moved away. */
const exchangeLoop = `
const { renameSync } = require("node:fs");
const { parentPort, workerData: volume } = require("node:worker_threads");
parentPort.postMessage("going");
let away = 0;
const move = (from, to) => {
  for (;;) {
    try {
      return renameSync(volume + "/" + from, volume + "/" + to);
    } catch {
      renameSync(volume + "/" + to, volume + "/made-" + away++);
    }
  }
};
for (;;) {
  move("dir", "dir.away");
  move("link", "dir");
  move("dir", "link");
  move("dir.away", "dir");
}`;

test("fsGroup: g+rwX, setgid on directories, the top one last", { skip: needsRoot() }, async () => {
  using directory = testDirectory();
  const volume = directory.join("v");
  mkdirSync(`${volume}/sub`, { recursive: true });
  chmodSync(volume, 0o700);
  for (const [name, mode] of Object.entries({ plain: 0o600, program: 0o4755, "sub/read-only": 0o444 })) {
    writeFileSync(`${volume}/${name}`, "");
    chmodSync(`${volume}/${name}`, mode);
  }
  const modes = (): Record<string, string> =>
    Object.fromEntries(
      [".", "sub", "plain", "program", "sub/read-only"].map((name) => {
        const info = lstatSync(`${volume}/${name}`);
        return [name, `${info.gid} ${(info.mode & 0o7777).toString(8)}`];
      }),
    );
  assert.equal(await systemVolumeFiles.giveToGroup(volume, access), 5);
  const given = { ".": "2770", plain: "660", program: "4775", "sub/read-only": "664" };
  const sub = (lstatSync(`${volume}/sub`).mode & 0o7777).toString(8);
  assert.equal(sub, "2775");
  for (const [name, mode] of Object.entries(given)) assert.equal(modes()[name], `${gid} ${mode}`);
  assert.equal(await systemVolumeFiles.giveToGroup(volume, access), 0, "nothing is left to be changed");
});

test("fsGroup: a tree with many files is treated like a small one", { skip: needsRoot() }, async () => {
  using directory = testDirectory();
  const volume = directory.join("v");
  mkdirSync(`${volume}/many`, { recursive: true });
  mkdirSync(`${volume}/many/deeper`);
  for (let index = 0; index < 2_500; index++) writeFileSync(`${volume}/many/${index}`, "", { mode: 0o600 });
  writeFileSync(`${volume}/many/deeper/\u{fffd}`, "", { mode: 0o600 });
  writeFileSync(directory.join("outside"), "", { mode: 0o600 });
  symlinkSync(directory.join("outside"), `${volume}/many/link`);
  const seen: number[] = [];
  const give = async (): Promise<number> =>
    await systemVolumeFiles.giveToGroup(volume, { ...access, onProgress: (files) => void seen.push(files) });
  assert.equal(await give(), 2_505);
  assert.deepEqual(seen, [1_000, 2_000]);
  const shown = (path: string): string => {
    const info = lstatSync(`${volume}/${path}`);
    return `${info.gid} ${(info.mode & 0o7777).toString(8)}`;
  };
  assert.equal(shown("."), `${gid} 2775`);
  assert.equal(shown("many/deeper"), `${gid} 2775`);
  for (const path of ["many/0", "many/2499", "many/deeper/\u{fffd}"]) assert.equal(shown(path), `${gid} 660`);
  assert.equal(lstatSync(`${volume}/many/link`).gid, gid);
  assert.equal(lstatSync(directory.join("outside")).mode & 0o7777, 0o600);
  assert.equal(await give(), 1, "only the link is not compared");
});

test("fsGroup: what goes wrong deep in a tree with many files is told, and it can be canceled", async () => {
  using directory = testDirectory();
  const volume = directory.join("v");
  let path = volume;
  for (let depth = 0; depth < 300; depth++) path += "/d";
  mkdirSync(path, { recursive: true });
  for (let index = 0; index < 1_500; index++) writeFileSync(`${volume}/${index}`, "");
  const canceling = new AbortController();
  const reason = new Error("canceled");
  const canceled = { ...access, onProgress: () => canceling.abort(reason) };
  await assert.rejects(systemVolumeFiles.giveToGroup(volume, canceled, canceling.signal), /canceled/);
  await assert.rejects(systemVolumeFiles.giveToGroup(volume, access), { code: "ENAMETOOLONG" });
});

test("a read-only volume gets no write permission", { skip: needsRoot() }, async () => {
  using directory = testDirectory();
  mkdirSync(directory.join("v"));
  chmodSync(directory.join("v"), 0o700);
  writeFileSync(directory.join("v/f"), "");
  chmodSync(directory.join("v/f"), 0o400);
  await systemVolumeFiles.giveToGroup(directory.join("v"), { ...access, readOnly: true });
  assert.equal(lstatSync(directory.join("v/f")).mode & 0o7777, 0o440);
  assert.equal(lstatSync(directory.join("v")).mode & 0o7777, 0o2750);
});

test("links get the group themselves, and their targets stay unchanged", { skip: needsRoot() }, async () => {
  using directory = testDirectory();
  mkdirSync(directory.join("v"));
  mkdirSync(directory.join("outside"));
  writeFileSync(directory.join("outside/file"), "");
  chmodSync(directory.join("outside/file"), 0o600);
  symlinkSync(directory.join("outside"), directory.join("v/directory"));
  symlinkSync(directory.join("outside/file"), directory.join("v/file"));
  await systemVolumeFiles.giveToGroup(directory.join("v"), access);
  assert.equal(lstatSync(directory.join("v/file")).gid, gid);
  for (const path of ["outside", "outside/file"]) assert.equal(lstatSync(directory.join(path)).gid, 0, path);
  assert.equal(lstatSync(directory.join("outside/file")).mode & 0o7777, 0o600);
});

test("OnRootMismatch skips a tree whose top directory already matches", { skip: needsRoot() }, async () => {
  using directory = testDirectory();
  const volume = directory.join("v");
  mkdirSync(volume);
  await systemVolumeFiles.giveToGroup(volume, access);
  writeFileSync(`${volume}/late`, "");
  linkSync(`${volume}/late`, `${volume}/again`);
  chmodSync(`${volume}/late`, 0o600);
  assert.equal(await systemVolumeFiles.giveToGroup(volume, { ...access, onlyOnRootMismatch: true }), 0);
  assert.equal(lstatSync(`${volume}/late`).mode & 0o7777, 0o600);
  chmodSync(volume, 0o2750);
  await systemVolumeFiles.giveToGroup(volume, { ...access, onlyOnRootMismatch: true });
  assert.equal(lstatSync(`${volume}/late`).mode & 0o7777, 0o660);
});

test("the top directory matches by group, minimum permissions, and setgid", () => {
  const of = (owner: number, mode: number, readOnly = false): boolean =>
    isGivenToGroup({ gid: owner, mode }, { gid, readOnly, onlyOnRootMismatch: true });
  assert.equal(of(gid, 0o2770), true);
  assert.equal(of(gid, 0o2775), true);
  assert.equal(of(0, 0o2770), false);
  assert.equal(of(gid, 0o770), false);
  assert.equal(of(gid, 0o2750), false);
  assert.equal(of(gid, 0o2550, true), true);
});

test(
  "a tree that is too deep to hold open, and a canceled call, end with an error",
  { skip: needsRoot() },
  async () => {
    using directory = testDirectory();
    let path = directory.join("v");
    for (let depth = 0; depth < 300; depth++) path += "/d";
    mkdirSync(path, { recursive: true });
    await assert.rejects(systemVolumeFiles.giveToGroup(directory.join("v"), access), { code: "ENAMETOOLONG" });
    const reason = new Error("canceled");
    await assert.rejects(
      systemVolumeFiles.giveToGroup(directory.join("v"), access, AbortSignal.abort(reason)),
      /canceled/,
    );
  },
);

test("readBeneath reads regular files of the volume only, and creates nothing", async () => {
  using directory = testDirectory();
  const root = directory.join("v");
  mkdirSync(directory.join("v/a"), { recursive: true });
  writeFileSync(directory.join("v/a/env"), "A='1'");
  symlinkSync("a/env", directory.join("v/link"));
  symlinkSync("/etc/passwd", directory.join("v/out"));
  symlinkSync("../../etc/passwd", directory.join("v/a/up"));
  const read = async (path: string, maxBytes = 5): Promise<string | undefined> => {
    const content = await systemVolumeFiles.readBeneath(root, path, maxBytes);
    return content && new TextDecoder().decode(content);
  };
  assert.equal(await read("a/env"), "A='1'");
  assert.equal(await read("link"), "A='1'");
  assert.equal(await read("b/c"), undefined);
  assert.equal(await read("a/env/below"), undefined);
  assert.equal(existsSync(directory.join("v/b")), false);
  for (const path of ["out", "a/up", "../v/a/env"]) await assert.rejects(read(path), { code: "EXDEV" });
  await assert.rejects(read("a"), { code: "EINVAL" });
  await assert.rejects(read("a/env", 4), { code: "EFBIG" });
});

test("readBeneath does not block on a pipe", async () => {
  using directory = testDirectory();
  execFileSync("mkfifo", [directory.join("pipe")]);
  await assert.rejects(systemVolumeFiles.readBeneath(directory.path, "pipe", 10), { code: "EINVAL" });
});
