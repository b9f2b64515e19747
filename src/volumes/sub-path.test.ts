import assert from "node:assert/strict";
import { test } from "node:test";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import { bindSubPath, subPathOf } from "./sub-path.ts";

const environment = [
  { name: "POD", value: new TextEncoder().encode("web-0") },
  { name: "EMPTY", value: new Uint8Array() },
];
const mount = { name: "v", mountPath: "/m" };

test("subPathExpr is expanded from the container's environment, subPath is not", () => {
  assert.equal(subPathOf(mount, environment), "");
  assert.equal(subPathOf({ ...mount, subPath: "a/$(POD)" }, environment), "a/$(POD)");
  assert.equal(subPathOf({ ...mount, subPathExpr: "a/$(POD)/$$(POD)" }, environment), "a/web-0/$(POD)");
});

test("a subPathExpr with a missing or empty variable is rejected, because it would show another path", () => {
  const expression = { ...mount, subPathExpr: "$(NONE)/$(EMPTY)" };
  assert.throws(() => subPathOf(expression, environment), { message: "missing value for EMPTY, NONE" });
});

test("a path that is absolute or contains `..` is rejected, also after expansion", () => {
  const hostile = [{ name: "UP", value: new TextEncoder().encode("../../etc") }];
  assert.throws(() => subPathOf({ ...mount, subPathExpr: "a/$(UP)" }, hostile), /must not contain '\.\.'/);
  assert.throws(() => subPathOf({ ...mount, subPath: "/etc" }, []), /must not be an absolute path/);
});

test("a subPathExpr that gets longer than any path is rejected before it is expanded", () => {
  const long = [{ name: "LONG", value: new Uint8Array(1 << 20).fill(0x61) }];
  const message = "the expanded SubPath does not fit: a path has at most 4096 bytes";
  assert.throws(() => subPathOf({ ...mount, subPathExpr: "$(LONG)".repeat(10_000) }, long), { message });
  const kibibyte = [{ name: "K", value: new Uint8Array(1 << 10).fill(0x61) }];
  assert.equal(subPathOf({ ...mount, subPathExpr: "$(K)".repeat(4) }, kibibyte).length, 4096);
  assert.throws(() => subPathOf({ ...mount, subPathExpr: `${"$(K)".repeat(4)}b` }, kibibyte), { message });
});

class Fixture {
  readonly files = new MemoryFiles(new SimClock(0).incarnation());
  readonly volumeFiles = new SimVolumeFiles(this.files);
  readonly mounts = new SimMounts();

  async bind(subPath: string): Promise<void> {
    await bindSubPath(this, "/vol", subPath, "/pod/volume-subpaths/v/c/0");
  }
}

test("a subPath is bind-mounted at its own path; a directory on a directory, a file on a file", async () => {
  const fixture = new Fixture();
  await fixture.files.makeDirectory("/vol/a", 0o755);
  await fixture.files.write("/vol/f", "x", 0o644);
  await fixture.bind("a");
  const target = "/pod/volume-subpaths/v/c/0";
  const bound = { source: "/vol/a", target, fileSystem: "", options: ["bind"] };
  assert.deepEqual(await fixture.mounts.list(), [bound]);
  assert.equal((await fixture.files.stat(target))?.type, "directory");
  await fixture.mounts.unmount(target);
  await fixture.bind("f");
  assert.equal((await fixture.files.stat(target))?.type, "file");
});

test("a missing subPath is created with the permissions of its volume", async () => {
  const fixture = new Fixture();
  await fixture.files.makeDirectory("/vol", 0o2775);
  await fixture.bind("new/part");
  assert.equal((await fixture.files.stat("/vol/new/part"))?.mode, 0o2775);
});

test("an earlier start's bind mount of another file is replaced", async () => {
  const fixture = new Fixture();
  await fixture.files.makeDirectory("/vol/a", 0o755);
  await fixture.bind("a");
  await fixture.files.makeDirectory("/vol/b", 0o755);
  await fixture.bind("b");
  assert.deepEqual(
    (await fixture.mounts.list()).map(({ source }) => source),
    ["/vol/b"],
  );
});

test("what is bound already is compared where it may hang, and not accessed here", async (t) => {
  const fixture = new Fixture();
  await fixture.files.makeDirectory("/vol/a", 0o755);
  await fixture.bind("a");
  const opened = await fixture.volumeFiles.openBeneath("/vol", "a");
  const shown: string[] = [];
  const isShownAt = async (path: string): Promise<boolean> => shown.push(path) > 0;
  t.mock.method(fixture.volumeFiles, "openBeneath", async () => ({ ...opened, isShownAt }));
  const stat = t.mock.method(fixture.files, "stat");
  const before = await fixture.mounts.list();
  await fixture.bind("a");
  assert.deepEqual([shown, stat.mock.callCount()], [["/pod/volume-subpaths/v/c/0"], 0]);
  assert.deepEqual(await fixture.mounts.list(), before);
});
