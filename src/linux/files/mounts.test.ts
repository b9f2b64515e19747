import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { DeadlineError } from "../../base/deadline.ts";
import type { MountInfo } from "./mountinfo.ts";
import { isOnLocal, mountsWith, systemMounts } from "./mounts.ts";
import { needsRoot, testDirectory, type TestDirectory } from "../processes/testing.ts";
import { type TmpfsCalls, tmpfsCalls } from "./tmpfs-calls.ts";

const skip = needsRoot();

async function mountsUnder(directory: TestDirectory): Promise<string[]> {
  const mounts = await systemMounts.list();
  return mounts.map((mount) => mount.target).filter((target) => target.startsWith(`${directory.path}/`));
}

/** A test directory whose mounts are removed with it, however the test ends. */
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
  assert.deepEqual(await systemMounts.below(target), [mount]);
  assert.deepEqual(await systemMounts.below(directory.path), [mount]);
  assert.deepEqual(await systemMounts.below(directory.join("with")), []);

  await systemMounts.unmount(target);
  assert.deepEqual(await mountsUnder(directory), []);
});

test("a read-only bind mount shows the source and rejects writes", { skip }, async () => {
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

test("unmounting a missing path or one that is no mount point is not an error", { skip }, async () => {
  await using directory = mountDirectory();
  await systemMounts.unmount(directory.path);
  await systemMounts.unmount(directory.join("missing"));
});

/** The system calls, with a record of each result. */
function notedCalls(): { readonly noted: string[]; readonly find: () => TmpfsCalls | undefined } {
  const noted: string[] = [];
  const calls = tmpfsCalls();
  const note = (what: string, isDone: boolean): boolean => {
    noted.push(`${what} ${isDone ? "done" : "refused"}`);
    return isDone;
  };
  const watched = calls && {
    mount: (...arguments_: Parameters<TmpfsCalls["mount"]>) => note("mount", calls.mount(...arguments_)),
    unmount: (target: string) => note("unmount", calls.unmount(target)),
  };
  return { noted, find: () => watched };
}

const skipCalls = skip || (tmpfsCalls() === undefined ? `Node.js ${process.version} has no node:ffi` : false);

test("small memory file systems are unmounted by system calls, others by a program", { skip: skipCalls }, async () => {
  await using directory = mountDirectory();
  const target = directory.join("memory");
  mkdirSync(target);
  for (const { options, bytes, files, byCalls } of [
    { options: ["size=1048576"], bytes: 10, files: 1, byCalls: ["mount done", "unmount done"] },
    { options: ["size=16777216"], bytes: 1 << 20, files: 1, byCalls: ["mount done"] },
    { options: ["size=1048576"], bytes: 1, files: 100, byCalls: ["mount done"] },
    { options: ["size=0"], bytes: 10, files: 1, byCalls: ["mount done"] },
    { options: ["size=1m"], bytes: 10, files: 1, byCalls: ["unmount done"] },
  ]) {
    const { noted, find } = notedCalls();
    const mounts = mountsWith(find);
    await mounts.mount({ source: "podwright-test", target, fileSystem: "tmpfs", options });
    assert.equal((await mountsUnder(directory)).length, 1);
    for (let index = 0; index < files; index++) writeFileSync(`${target}/${index}`, Buffer.alloc(bytes));
    await mounts.unmount(target);
    assert.deepEqual(await mountsUnder(directory), []);
    assert.deepEqual(noted, byCalls, JSON.stringify({ options, bytes, files }));
  }
});

test("mount(8) takes over when the calls fail or are unavailable, and explains errors", { skip }, async () => {
  await using directory = mountDirectory();
  const target = directory.join("memory");
  mkdirSync(target);
  const refusing = { mount: () => false, unmount: () => false };
  for (const calls of [refusing, undefined]) {
    const mounts = mountsWith(() => calls);
    await mounts.mount({ source: "podwright-test", target, fileSystem: "tmpfs", options: ["size=4096"] });
    assert.deepEqual(await mountsUnder(directory), [target]);
    await mounts.unmount(target);
    assert.deepEqual(await mountsUnder(directory), []);
    const missing = { source: "podwright-test", target: directory.join("no"), fileSystem: "tmpfs", options: [] };
    await assert.rejects(mounts.mount(missing), /cannot mount podwright-test on .*\/no: .*mount point does not exist/);
  }
});

test("reports whether the path to a mount crosses remote file systems", () => {
  const mount = (id: number, parentId: number, fileSystem: string): MountInfo => {
    return {
      id,
      parentId,
      fileSystem,
      device: "0:1",
      root: "/",
      isShared: false,
      target: `/${id}`,
      source: "",
      options: [],
      superOptions: [],
    };
  };
  const all = [mount(1, 1, "ext4"), mount(2, 1, "tmpfs"), mount(3, 1, "fuse.sshfs"), mount(4, 3, "ext4")];
  assert.equal(isOnLocal(all, mount(9, 1, "tmpfs")), true);
  assert.equal(isOnLocal(all, mount(9, 2, "tmpfs")), true);
  assert.equal(isOnLocal(all, mount(9, 3, "tmpfs")), false);
  assert.equal(isOnLocal(all, mount(9, 4, "tmpfs")), false);
  // The parent of a root is outside of this process's view.
  assert.equal(isOnLocal(all, mount(9, 77, "tmpfs")), true);
});

test("a busy mount is rejected, and lazily unmounted on request", { skip }, async () => {
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

test("a symbolic link swapped in for a target is not followed when unmounting", { skip }, async () => {
  await using directory = mountDirectory();
  mkdirSync(directory.join("mounted"));
  symlinkSync(directory.join("mounted"), directory.join("link"));
  const mount = { source: "podwright-test", target: directory.join("mounted"), fileSystem: "tmpfs", options: [] };
  await systemMounts.mount(mount);
  await systemMounts.unmount(directory.join("link"));
  assert.deepEqual(await mountsUnder(directory), [directory.join("mounted")]);
});

test("an error gives source, target and reason of the mount", { skip }, async () => {
  await using directory = mountDirectory();
  const mount = { source: directory.join("missing"), target: directory.path, fileSystem: "", options: ["bind"] };
  await assert.rejects(systemMounts.mount(mount), /cannot mount .*\/missing on .*: .*(does not exist|No such file)/);
});

test("relative targets and options that contain further options are rejected before anything runs", async () => {
  const mount = { source: "none", fileSystem: "tmpfs", options: [] };
  await assert.rejects(systemMounts.mount({ ...mount, target: "-o" }), /not absolute/);
  await assert.rejects(systemMounts.unmount("--all"), /not absolute/);
  const hidden = { ...mount, target: "/mnt", options: ["ro,suid"] };
  await assert.rejects(systemMounts.mount(hidden), /not usable/);
});

test("an unmount that does not even end when it is killed has no successor until it does", async () => {
  const pids: number[] = [];
  let isAlive = true;
  const mounts = mountsWith(() => undefined, {
    isAlive: () => isAlive,
    run: async (program, arguments_, { timeoutMs, onStart }) => {
      const pid = 4000 + pids.length;
      pids.push(pid);
      onStart?.(pid);
      if (pids.length > 1) return { exitCode: 0, signal: undefined, stdout: "", stderr: "" };
      throw new DeadlineError(`${program} ${arguments_.at(-1)}`, timeoutMs);
    },
  });
  await assert.rejects(mounts.unmount("/proc"), /umount \/proc: timed out after 120 s/);
  await assert.rejects(mounts.unmount("/proc"), {
    code: "ETIMEDOUT",
    message: /an earlier attempt, process 4000, is still running/,
  });
  isAlive = false;
  await mounts.unmount("/proc");
  assert.equal(pids.length, 2);
});

test("a server's export is mounted by mount(8)'s helper, and an unmount that hangs can be forced", async () => {
  const commands: string[] = [];
  const mounts = mountsWith(() => undefined, {
    isAlive: () => true,
    run: async (program, words, { timeoutMs, onStart }) => {
      commands.push([program, ...words].join(" "));
      onStart?.(4000);
      if (program === "umount" && !words.includes("--force")) throw new DeadlineError("umount", timeoutMs);
      return { exitCode: 0, signal: undefined, stdout: "", stderr: "" };
    },
  });
  await mounts.mount({ source: "[fd00::1]:/a", target: "/mnt", fileSystem: "nfs", options: ["ro", "nfsvers=4.1"] });
  await assert.rejects(mounts.unmount("/proc"), /timed out/u);
  await assert.rejects(mounts.unmount("/proc"), { code: "ETIMEDOUT" });
  await mounts.unmount("/proc", { force: true });
  assert.deepEqual(commands, [
    "mount --no-canonicalize -t nfs -o ro,nfsvers=4.1 -- [fd00::1]:/a /mnt",
    "umount --no-canonicalize -- /proc",
    "umount --no-canonicalize --force -- /proc",
  ]);
});
