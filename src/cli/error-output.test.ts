import assert from "node:assert/strict";
import { openSync } from "node:fs";
import { test } from "node:test";
import { systemFiles } from "../linux/files/files.ts";
import { FileError } from "../ports/files.ts";
import { exitCodeOf, printError } from "./error-output.ts";
import { fileProblem } from "../base/file-problem.ts";
import { Terminal } from "./terminal.ts";

function told(error: unknown, isRoot = true): string {
  const problem = fileProblem(error, isRoot);
  return `${problem?.message} → ${problem?.remedy}`;
}

/** As the system's files throw it. */
function thrown(code: string, words: string, syscall: string, path: string): FileError {
  const message = `${code}: ${words}, ${syscall} '${path}'`;
  const cause = Object.assign(new Error(message), { code, syscall, path });
  return new FileError(code, path, message, { cause });
}

test("a file error says what could not be done, where, and what to do", () => {
  const path = "/etc/podwright/manifests";
  const denied = thrown("EACCES", "permission denied", "scandir", path);
  assert.equal(told(denied, false), `cannot list ${path}: permission denied → run this command as root`);
  assert.match(told(denied), /→ check its permissions/u);
  const locked = thrown("EROFS", "read-only file system", "open", "/etc/systemd/system/podwright.service");
  assert.equal(
    told(locked),
    "cannot write /etc/systemd/system/podwright.service: read-only file system → remount its file system writable",
  );
  assert.match(
    told(thrown("ENOSPC", "no space left on device", "write", "/a")),
    /^cannot write \/a: no space .* → free/u,
  );
  assert.equal(
    told(new FileError("EFBIG", "/a", "EFBIG: longer than 5 bytes: '/a'")),
    "cannot use /a: longer than 5 bytes → check the path, and what is there",
  );
});

test("errors of the machine's own files are recognised, through the port and without it", async () => {
  const path = "/proc/self/status/below";
  const error: unknown = await systemFiles.read(path, 10).catch((thing: unknown) => thing);
  assert.match(told(error), /^cannot open \/proc\/self\/status\/below: not a directory → /u);
  assert.throws(
    () => openSync(path, "r"),
    (raw) => told(raw) === told(error),
  );
});

test("other errors, also of programs that are missing, are none of files", () => {
  assert.equal(fileProblem(new TypeError("x is undefined"), true), undefined);
  const missing = Object.assign(new Error("spawn mount ENOENT"), {
    code: "ENOENT",
    syscall: "spawn mount",
    path: "mount",
  });
  assert.equal(fileProblem(missing, true), undefined);
  assert.equal(fileProblem("text", true), undefined);
});

test("the command line does not call them its bugs", () => {
  let printed = "";
  const stream = {
    write: (text: string | Uint8Array): boolean => {
      printed += String(text);
      return true;
    },
  };
  const error = thrown("EROFS", "read-only file system", "mkdir", "/etc/podwright");
  printError(new Terminal(stream, stream, {}), error);
  assert.equal(
    printed,
    "podwright: cannot create /etc/podwright: read-only file system\n  → remount its file system writable\n",
  );
  assert.equal(exitCodeOf(error), 3);
  printed = "";
  printError(new Terminal(stream, stream, {}), new TypeError("x is undefined"));
  assert.match(printed, /^podwright: a bug in podwright: TypeError: x is undefined\n/u);
});
