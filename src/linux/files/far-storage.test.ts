import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { HangingStorage, noHangingStorage } from "../../../test/support/hanging-storage.ts";
import { testDirectory } from "../processes/testing.ts";
import { type FarMount, farStorageOn, isRemote, mountsOnDisks, OwnDisks, remoteMountOf, wayTo } from "./far-storage.ts";
import { recentMountTable } from "./mount-table.ts";

const skip = noHangingStorage ?? false;

function storageBehind(path: string, ...mounts: readonly FarMount[]): ReturnType<typeof farStorageOn> {
  return farStorageOn(wayTo(path, (target) => mounts.find((each) => each.target === target)));
}

function mount(target: string, fileSystem: string, device = `dev${target}`): FarMount {
  return { target, fileSystem, device };
}

test("file systems that depend on a server or a process are recognized by type", () => {
  const remote = ["nfs4", "fuse", "fuse.sshfs", "cifs", "ceph", "9p", "autofs", "gpfs", "wekafs", "panfs"];
  assert.deepEqual(remote.map(isRemote), Array(remote.length).fill(true));
  assert.deepEqual(["ext4", "tmpfs", "overlay", "fusectl", "xfs"].map(isRemote), Array(5).fill(false));
});

test("a path's way to far storage is found over links, without accessing the storage", () => {
  using directory = testDirectory();
  const far = directory.join("far");
  mkdirSync(far);
  mkdirSync(directory.join("near"));
  symlinkSync(`${far}/deep`, directory.join("absolute"));
  symlinkSync("../far/x", directory.join("near/relative"));
  symlinkSync("loop", directory.join("loop"));
  const through = (path: string): string | undefined => storageBehind(path, mount(far, "ext4"))?.target;
  const names = ["far", "far/a/b", "absolute/c", "near/relative"];
  for (const name of names) assert.equal(through(directory.join(name)), far);
  for (const name of ["near", "loop", "missing/x"]) assert.equal(through(directory.join(name)), undefined);
  assert.equal(through(`${directory.path}/near/../far`), far);
  assert.equal(through("/"), undefined);
});

test("a link behind a far mount is not read, and a server behind a disk is found by its path", () => {
  using directory = testDirectory();
  const [disk, server] = [mount(directory.join("disk"), "xfs"), mount(directory.join("disk/server"), "nfs4")];
  mkdirSync(directory.join("disk"));
  symlinkSync("/etc", directory.join("disk/link"));
  const farMountAt = (target: string): FarMount | undefined => [disk, server].find((each) => each.target === target);
  assert.equal(wayTo(directory.join("disk/link/x"), farMountAt).end, directory.join("disk/link/x"));
  assert.deepEqual(wayTo(directory.join("disk/server/x"), farMountAt).far, [disk, server]);
});

test("an automounter's places hang each by itself, and what it has mounted by its own file system", () => {
  const home = mount("/podwright-test/home", "autofs", "0:50");
  const bob = mount("/podwright-test/home/bob", "nfs4", "0:51");
  const behind = (path: string): unknown => storageBehind(`/podwright-test/home${path}`, home, bob);
  const alice = { target: "/podwright-test/home/alice", lane: "0:50 /podwright-test/home/alice", isRemote: true };
  assert.deepEqual(behind("/alice/data"), alice);
  assert.deepEqual(behind("/bob/data"), { target: bob.target, lane: "0:51", isRemote: true });
  assert.deepEqual(behind(""), { target: home.target, lane: "0:50 /podwright-test/home", isRemote: true });
});

test("a table's mounts are the last one at each place, without those in memory", () => {
  const line = (device: string, target: string, type: string): string =>
    `36 35 ${device} / ${target} rw shared:1 master:2 - ${type} source rw,name=a\n`;
  const table = [
    line("8:1", "/", "ext4"),
    line("0:30", "/run", "tmpfs"),
    line("0:31", "/run/c/rootfs", "overlay"),
    line("0:40", String.raw`/mnt/a\040b`, "autofs"),
    line("8:16", String.raw`/mnt/a\040b`, "ext4"),
  ];
  const found = [...mountsOnDisks(table.join("")).values()];
  assert.deepEqual(found, [
    { target: "/", device: "8:1", fileSystem: "ext4" },
    { target: "/mnt/a b", device: "8:16", fileSystem: "ext4" },
  ]);
});

test("the disk of the node's own directory is its own, with all mounts of it; others are far", { skip }, () => {
  using directory = testDirectory();
  const image = directory.join("image");
  const target = directory.join("disk");
  mkdirSync(target);
  execFileSync("truncate", ["--size=4M", image]);
  execFileSync("mkfs.ext4", ["-q", image]);
  try {
    execFileSync("mount", ["-o", "loop", image, target], { stdio: "pipe" });
  } catch {
    // Without loop devices.
    return;
  }
  try {
    const [own, others] = [new OwnDisks([`${target}/kubelet`]), new OwnDisks()];
    assert.equal(own.farStorageOf(`${target}/kubelet/pods`), undefined);
    assert.deepEqual(
      [others.farStorageOf(`${target}/x`)?.target, others.farStorageOf(`${target}/x`)?.isRemote],
      [target, false],
    );
    assert.equal(others.farStorageOf(directory.path), undefined);
    assert.equal(others.farStorageBelow(directory.path)?.target, target);
    assert.equal(remoteMountOf(`${target}/x`), undefined);
  } finally {
    execFileSync("umount", [target]);
  }
});

test("a new mount is recognized, even if its mount table was read just before", { skip }, () => {
  using directory = testDirectory();
  const disks = new OwnDisks();
  assert.equal(disks.farStorageOf(directory.path), undefined);
  assert.equal(disks.farStorageBelow(directory.path), undefined);
  recentMountTable();
  using hanging = new HangingStorage(directory.join("far"));
  assert.equal(remoteMountOf(`${hanging.path}/x`), hanging.path);
  assert.equal(disks.farStorageOf(`${hanging.path}/x`)?.target, hanging.path);
  assert.equal(disks.farStorageBelow(directory.path)?.target, hanging.path);
});

test("a path in a volume hangs where something is mounted in it, and never elsewhere by a link", { skip }, () => {
  using directory = testDirectory();
  const disks = new OwnDisks();
  const volume = directory.join("v");
  mkdirSync(`${volume}/a`, { recursive: true });
  using elsewhere = new HangingStorage(directory.join("elsewhere"));
  symlinkSync(elsewhere.path, `${volume}/link`);
  const where = (path: string): readonly unknown[] => {
    const found = disks.farStorageIn(volume, path);
    return [found?.target, found?.lane.startsWith("below ")];
  };
  assert.deepEqual([where("a"), where("link")], [Array(2).fill(undefined), Array(2).fill(undefined)]);
  using inside = new HangingStorage(`${volume}/inside`);
  assert.deepEqual(where("inside/x"), [inside.path, false]);
  assert.deepEqual(
    [where("a"), where("link")],
    [
      [volume, true],
      [volume, true],
    ],
  );
  assert.deepEqual(disks.farStorageIn(elsewhere.path, "x")?.target, elsewhere.path);
});
