import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { inSubvolume, mountedBtrfs, noBtrfs, subvolumes } from "../../../test/support/btrfs.ts";
import { FileError } from "../../ports/files.ts";
import { systemMounts } from "./mounts.ts";
import { mountFrom, removeTree } from "./remove-tree.ts";
import { needsRoot, testDirectory } from "../processes/testing.ts";

const skip = needsRoot();

test("a tree is removed with its contents, and the targets of its links stay", async () => {
  using directory = testDirectory();
  const tree = directory.join("tree");
  mkdirSync(`${tree}/a/b/c`, { recursive: true });
  mkdirSync(directory.join("outside"));
  writeFileSync(directory.join("outside", "precious"), "");
  symlinkSync(directory.join("outside"), `${tree}/a/link`);
  symlinkSync("missing", `${tree}/a/dangling`);
  writeFileSync(`${tree}/a/b/file`, "");
  execFileSync("mkfifo", [`${tree}/pipe`]);
  await removeTree(tree);
  assert.deepEqual(readdirSync(directory.path), ["outside"]);
  assert.deepEqual(readdirSync(directory.join("outside")), ["precious"]);
});

test("a file, a link to a directory and nothing at all can be removed as well", async () => {
  using directory = testDirectory();
  mkdirSync(directory.join("outside"));
  writeFileSync(directory.join("outside", "precious"), "");
  symlinkSync("outside", directory.join("link"));
  await removeTree(directory.join("link"));
  await removeTree(directory.join("outside", "precious"));
  await removeTree(directory.join("missing"));
  assert.deepEqual(readdirSync(directory.path), ["outside"]);
});

test("invalid UTF-8 in names, and very many entries, are no obstacle", async () => {
  using directory = testDirectory();
  const tree = directory.join("tree");
  mkdirSync(tree);
  const bytes = Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0xfe, 0x41])]);
  mkdirSync(bytes);
  writeFileSync(Buffer.concat([bytes, Buffer.from("/\xff\n", "latin1")]), "");
  for (let file = 0; file < 3_000; file++) writeFileSync(`${tree}/${file}`, "");
  await removeTree(tree);
  assert.ok(!existsSync(tree));
});

test("a tree deeper than PATH_MAX is removed", async () => {
  using directory = testDirectory();
  const tree = directory.join("tree");
  const name = "d".repeat(100);
  mkdirSync(tree);
  // 100 levels of 101 bytes exceed PATH_MAX (4096), so it is built by descending step by step.
  execFileSync("sh", ["-c", `for i in $(seq 100); do mkdir ${name} && cd -P ${name} || exit 1; done; touch bottom`], {
    cwd: tree,
  });
  await removeTree(tree);
  assert.ok(!existsSync(tree));
});

test(
  "a mount in the tree, also a bind mount of the same file system, is rejected before anything is removed",
  { skip },
  async () => {
    using directory = testDirectory();
    const tree = directory.join("tree");
    mkdirSync(`${tree}/mounted`, { recursive: true });
    mkdirSync(directory.join("source"));
    writeFileSync(directory.join("source", "precious"), "");
    writeFileSync(`${tree}/kept`, "");
    const bind = { source: directory.join("source"), target: `${tree}/mounted`, fileSystem: "", options: ["bind"] };
    await systemMounts.mount(bind);
    try {
      symlinkSync(directory.path, directory.join("link"));
      for (const path of [tree, `${tree}/mounted`, directory.join("link", "tree")]) {
        await assert.rejects(removeTree(path), (error) => error instanceof FileError && error.code === "EBUSY");
      }
      assert.deepEqual(readdirSync(tree).toSorted(), ["kept", "mounted"]);
      assert.deepEqual(readdirSync(directory.join("source")), ["precious"]);
    } finally {
      await systemMounts.unmount(bind.target);
    }
    await removeTree(tree);
    assert.ok(!existsSync(tree));
  },
);

test("a partial failure removes the rest, and the error names what remains", { skip }, async (t) => {
  using directory = testDirectory();
  const tree = directory.join("tree");
  mkdirSync(`${tree}/a`, { recursive: true });
  writeFileSync(`${tree}/a/immutable`, "");
  writeFileSync(`${tree}/a/other`, "");
  writeFileSync(`${tree}/z`, "");
  try {
    execFileSync("chattr", ["+i", `${tree}/a/immutable`], { stdio: "pipe" });
  } catch {
    t.skip("the file system of the temporary directory has no immutable files");
    return;
  }
  try {
    await assert.rejects(removeTree(tree), /EPERM: cannot remove .*immutable/);
    assert.deepEqual(readdirSync(tree), ["a"]);
    assert.deepEqual(readdirSync(`${tree}/a`), ["immutable"]);
  } finally {
    execFileSync("chattr", ["-i", `${tree}/a/immutable`]);
  }
});

test("a directory that keeps being swapped for a link never leads outside", async () => {
  using directory = testDirectory();
  const outside = directory.join("outside");
  mkdirSync(outside);
  writeFileSync(`${outside}/precious`, "");
  for (let round = 0; round < 20; round++) {
    const tree = directory.join("tree");
    mkdirSync(`${tree}/victim/deep`, { recursive: true });
    symlinkSync(outside, `${tree}/decoy`);
    const removal = removeTree(tree).catch(() => {});
    for (let swap = 0; swap < 20; swap++) {
      try {
        renameSync(`${tree}/victim`, `${tree}/aside`);
        renameSync(`${tree}/decoy`, `${tree}/victim`);
        renameSync(`${tree}/victim`, `${tree}/decoy`);
        renameSync(`${tree}/aside`, `${tree}/victim`);
      } catch {
        // The removal was faster.
      }
      await new Promise(setImmediate);
    }
    await removal;
    await removeTree(tree);
    assert.deepEqual(readdirSync(outside), ["precious"]);
  }
});

test(
  "btrfs subvolumes are removed with their contents, however deep and one in another",
  { skip: noBtrfs() },
  async () => {
    using btrfs = mountedBtrfs();
    const tree = `${btrfs.path}/volume`;
    // A btrfs moves no directory out of its subvolume: each has more levels than are opened at a time.
    for (let subvolume = 0; subvolume <= subvolumes; subvolume++) {
      const deep = `${tree}/${`${inSubvolume}/`.repeat(subvolume)}${"d/".repeat(70)}`;
      mkdirSync(deep, { recursive: true });
      writeFileSync(`${deep}/bottom`, "");
    }
    await removeTree(tree);
    assert.deepEqual(readdirSync(btrfs.path), []);
  },
);

test("a mount in a btrfs subvolume is never entered", { skip: noBtrfs() }, async () => {
  using btrfs = mountedBtrfs();
  const tree = `${btrfs.path}/volume`;
  const [source, target] = [`${btrfs.path}/source`, `${tree}/${inSubvolume}/mounted`];
  mkdirSync(source);
  mkdirSync(target);
  writeFileSync(`${source}/precious`, "");
  await systemMounts.mount({ source, target, fileSystem: "", options: ["bind"] });
  await assert.rejects(removeTree(tree, { isUnmounted: true }), { code: "EBUSY" });
  assert.deepEqual(readdirSync(`${tree}/${inSubvolume}`), ["mounted"]);
  assert.deepEqual(readdirSync(source), ["precious"]);
});

test("a mount is known by its ID, and only where there is none by its device", () => {
  assert.equal(mountFrom("pos:\t0\nflags:\t02100000\nmnt_id:\t27\nino:\t2\n", 40), mountFrom("mnt_id:\t27\n", 41));
  assert.notEqual(mountFrom("mnt_id:\t27\n", 40), mountFrom("mnt_id:\t28\n", 40));
  assert.notEqual(mountFrom("pos:\t0\n", 40), mountFrom("pos:\t0\n", 41));
});
