import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { systemMounts } from "./mounts.ts";
import { needsRoot, testDirectory, type TestDirectory } from "./testing.ts";

const skip = needsRoot();

async function mountsUnder(directory: TestDirectory): Promise<string[]> {
  const mounts = await systemMounts.list();
  return mounts.map((mount) => mount.target).filter((target) => target.startsWith(`${directory.path}/`));
}

/** A test directory whose mounts are removed with it, whatever the test did. */
function mountDirectory(): TestDirectory & AsyncDisposable {
  const directory = testDirectory();
  return Object.assign(directory, {
    async [Symbol.asyncDispose]() {
      for (const target of (await mountsUnder(directory)).toReversed()) {
        await systemMounts.unmount(target, { lazy: true });
      }
      directory[Symbol.dispose]();
    },
  });
}

test("a tmpfs is mounted, listed with its options and unmounted", { skip }, async () => {
  await using directory = mountDirectory();
  const target = directory.join("with space\\and\ttab");
  mkdirSync(target);
  const options = ["nodev", "size=64k", "mode=700"];
  await systemMounts.mount({ source: "podwright-test", target, fileSystem: "tmpfs", options });
  const mount = (await systemMounts.list()).find((one) => one.target === target);
  assert.equal(mount?.source, "podwright-test");
  assert.equal(mount?.fileSystem, "tmpfs");
  for (const option of ["rw", ...options]) assert.ok(mount?.options.includes(option), option);

  await systemMounts.unmount(target);
  assert.deepEqual(await mountsUnder(directory), []);
});

test("a read-only bind mount shows the source and takes no writes", { skip }, async () => {
  await using directory = mountDirectory();
  const source = directory.join("-source");
  const target = directory.join("-target");
  mkdirSync(source);
  mkdirSync(target);
  writeFileSync(`${source}/file`, "text");
  await systemMounts.mount({ source, target, fileSystem: "", options: ["bind", "ro"] });
  assert.equal(readFileSync(`${target}/file`, "utf8"), "text");
  assert.throws(() => writeFileSync(`${target}/file`, "other"), { code: "EROFS" });
  const mount = (await systemMounts.list()).find((one) => one.target === target);
  assert.equal(mount?.options.includes("ro"), true);
  assert.equal(mount?.options.includes("rw"), false);
});

test("unmounting what is no mount point, or not there, is no error", { skip }, async () => {
  await using directory = mountDirectory();
  await systemMounts.unmount(directory.path);
  await systemMounts.unmount(directory.join("missing"));
});

test("a memory file system is unmounted with little, much or an unlimited amount in it", { skip }, async () => {
  await using directory = mountDirectory();
  const target = directory.join("memory");
  mkdirSync(target);
  for (const [size, bytes] of [
    ["size=1048576", 10],
    ["size=16777216", 8 << 20],
    ["size=0", 10],
  ] as const) {
    await systemMounts.mount({ source: "podwright-test", target, fileSystem: "tmpfs", options: [size] });
    writeFileSync(`${target}/file`, Buffer.alloc(bytes));
    await systemMounts.unmount(target);
    assert.deepEqual(await mountsUnder(directory), [], size);
  }
});

test("a busy mount is refused, and lazily unmounted when asked", { skip }, async () => {
  await using directory = mountDirectory();
  const target = directory.join("outer");
  mkdirSync(target);
  await systemMounts.mount({ source: "podwright-test", target, fileSystem: "tmpfs", options: [] });
  mkdirSync(`${target}/inner`);
  await systemMounts.mount({ source: "podwright-test", target: `${target}/inner`, fileSystem: "tmpfs", options: [] });
  await assert.rejects(systemMounts.unmount(target), /cannot unmount .*busy/);
  await systemMounts.unmount(target, { lazy: true });
  assert.deepEqual(await mountsUnder(directory), []);
});

test("a symbolic link put in the place of a target is not followed when unmounting", { skip }, async () => {
  await using directory = mountDirectory();
  mkdirSync(directory.join("mounted"));
  symlinkSync(directory.join("mounted"), directory.join("link"));
  const mount = { source: "podwright-test", target: directory.join("mounted"), fileSystem: "tmpfs", options: [] };
  await systemMounts.mount(mount);
  await systemMounts.unmount(directory.join("link"));
  assert.deepEqual(await mountsUnder(directory), [directory.join("mounted")]);
});

test("a failed mount says what, where and why", { skip }, async () => {
  await using directory = mountDirectory();
  const mount = { source: directory.join("missing"), target: directory.path, fileSystem: "", options: ["bind"] };
  await assert.rejects(systemMounts.mount(mount), /cannot mount .*\/missing on .*: .*(does not exist|No such file)/);
});

test("relative targets and options that hide further options are refused before anything runs", async () => {
  const mount = { source: "none", fileSystem: "tmpfs", options: [] };
  await assert.rejects(systemMounts.mount({ ...mount, target: "-o" }), /not absolute/);
  await assert.rejects(systemMounts.unmount("--all"), /not absolute/);
  const hidden = { ...mount, target: "/mnt", options: ["ro,suid"] };
  await assert.rejects(systemMounts.mount(hidden), /not usable/);
});
