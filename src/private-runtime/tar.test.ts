import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { tar } from "./tar.ts";

test("tar(1) lists the archive's content, with modes, owners, sizes and times", () => {
  const archive = tar([
    { path: "tmp", type: "directory", mode: 0o1777 },
    { path: "bin/tool", type: "file", mode: 0o755, data: Buffer.from("x".repeat(513)) },
    { path: "bin/alias", type: "symlink", mode: 0o777, target: "tool" },
    { path: "empty", type: "file", mode: 0o600, data: new Uint8Array() },
  ]);
  const listing = execFileSync("tar", ["-tv", "--utc", "--numeric-owner", "-f", "-"], {
    input: archive,
    encoding: "utf8",
  });
  assert.deepEqual(
    listing
      .trimEnd()
      .split("\n")
      .map((line) => line.replaceAll(/ +/g, " ")),
    [
      "drwxrwxrwt 0/0 0 1970-01-01 00:00 tmp/",
      "-rwxr-xr-x 0/0 513 1970-01-01 00:00 bin/tool",
      "lrwxrwxrwx 0/0 0 1970-01-01 00:00 bin/alias -> tool",
      "-rw------- 0/0 0 1970-01-01 00:00 empty",
    ],
  );
});

test("tar(1) extracts a file's bytes unchanged", () => {
  const data = Buffer.from(Array.from({ length: 1500 }, (_, index) => index % 256));
  const archive = tar([{ path: "data", type: "file", mode: 0o644, data }]);
  assert.equal(archive.length % 512, 0);
  assert.deepEqual(execFileSync("tar", ["-xO", "-f", "-", "data"], { input: archive }), data);
});

test("a path longer than a header permits is rejected, not truncated", () => {
  assert.throws(() => tar([{ path: "p".repeat(101), type: "file", mode: 0o644, data: new Uint8Array() }]), RangeError);
});
