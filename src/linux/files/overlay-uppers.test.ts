import assert from "node:assert/strict";
import { test } from "node:test";
import { upperDirectories, upperDirectory } from "./overlay-uppers.ts";

const own = upperDirectories(
  [
    "29 1 254:0 / / rw shared:1 - ext4 /dev/vda rw",
    "70 29 0:50 / /run/a/rootfs rw - overlay overlay rw,lowerdir=/s/1/fs:/s/2/fs,upperdir=/s/9/fs,workdir=/s/9/work",
    "71 29 0:51 / /run/b/rootfs rw - overlay overlay rw,lowerdir=/s/1/fs,upperdir=/with\\054comma/fs,workdir=/w",
    "72 29 0:52 / /run/c/rootfs ro - overlay overlay ro,lowerdir=/s/1/fs:/s/2/fs",
    "73 29 0:53 / /run/d/rootfs rw - overlay overlay rw,lowerdir=l/A,upperdir=x/diff,workdir=x/work",
  ].join("\n"),
);

test("the writable directory of a container's root is that of the machine's overlay with the same device", () => {
  const tableOf = (device: string, fileSystem = "overlay"): string =>
    [
      `300 200 ${device} / / rw,relatime - ${fileSystem} overlay rw,lowerdir=/x,upperdir=/etc,workdir=/y`,
      "301 300 0:60 / /proc rw - proc proc rw",
    ].join("\n");
  assert.equal(upperDirectory(own, tableOf("0:50")), "/s/9/fs");
  assert.equal(upperDirectory(own, tableOf("0:51")), "/with,comma/fs");
});

test("a root that is no such overlay has none, whatever its process claims", () => {
  const claims = "rw,lowerdir=/x,upperdir=/etc,workdir=/y";
  const root = (device: string, fileSystem: string, target = "/"): string =>
    `300 200 ${device} / ${target} rw - ${fileSystem} overlay ${claims}`;
  for (const table of [
    undefined,
    "",
    root("0:99", "overlay"),
    root("0:52", "overlay"),
    root("0:53", "overlay"),
    root("254:0", "ext4"),
    root("0:50", "overlay", "/inner"),
  ]) {
    assert.equal(upperDirectory(own, table), undefined, `${table}`);
  }
});
