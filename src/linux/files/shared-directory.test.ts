import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseMountInfo, readMountInfo } from "./mountinfo.ts";
import { systemMounts } from "./mounts.ts";
import { systemProcesses } from "../processes/processes.ts";
import { shareDirectory, sharingOf } from "./shared-directory.ts";

const line = (id: number, target: string, shared = ""): string =>
  `${id} 1 8:1 / ${target} rw${shared === "" ? "" : ` ${shared}`} - ext4 /dev/sda rw`;
const of = (...lines: readonly string[]): string => sharingOf(parseMountInfo(lines.join("\n")), "/var/lib/kubelet");

test("a directory becomes a shared mount unless its parent mount is shared, or that would hide mounts below it", () => {
  assert.equal(of(line(1, "/")), "mount-and-share");
  assert.equal(of(line(1, "/", "shared:1")), "shared");
  assert.equal(of(line(1, "/", "shared:1"), line(2, "/var/lib")), "mount-and-share");
  assert.equal(of(line(1, "/"), line(2, "/var/lib", "shared:1 master:3")), "shared");
  assert.equal(of(line(1, "/"), line(2, "/var/lib/kubelet")), "share");
  assert.equal(of(line(1, "/"), line(2, "/var/lib/kubelet"), line(3, "/var/lib/kubelet", "shared:5")), "shared");
  assert.equal(of(line(1, "/"), line(2, "/var/lib/kubelet/pods/a/volumes/x")), "has-mounts");
  assert.equal(of(line(1, "/"), line(2, "/var/lib/kubelet-other")), "mount-and-share");
});

test(
  "a directory of this machine is shared once",
  { skip: process.getuid?.() === 0 ? false : "needs root" },
  async () => {
    const directory = await mkdtemp(join(tmpdir(), "podwright-shared-"));
    const own = async () => readMountInfo().filter(({ target }) => target === directory);
    try {
      for (let times = 1; times <= 2; times++) {
        assert.ok(await shareDirectory(systemMounts, directory));
        assert.equal(sharingOf(readMountInfo(), directory), "shared");
        assert.ok((await own()).length === 1);
      }
      const { exitCode } = await systemProcesses.run("mount", ["--make-private", directory], { timeoutMs: 10_000 });
      assert.equal(exitCode, 0);
      assert.equal(sharingOf(readMountInfo(), directory), "share");
      assert.ok(await shareDirectory(systemMounts, directory));
      assert.equal(sharingOf(readMountInfo(), directory), "shared");
    } finally {
      await systemMounts.unmount(directory);
      await rm(directory, { recursive: true });
    }
  },
);
