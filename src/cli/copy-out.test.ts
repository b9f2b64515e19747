import assert from "node:assert/strict";
import {
  chmod,
  lstat,
  mkdir,
  mkdtempDisposable,
  readdir,
  readFile,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PodwrightError } from "../base/errors.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Processes } from "../ports/processes.ts";
import { copyOut } from "./copy-out.ts";

const never = AbortSignal.any([]);
const machine: { readonly files: Files; readonly processes: Processes } = {
  files: systemFiles,
  processes: systemProcesses,
};

async function withData(work: (directory: string, data: string) => Promise<void>): Promise<void> {
  await using directory = await mkdtempDisposable(join(tmpdir(), "podwright-copy-"));
  const data = join(directory.path, "data");
  await mkdir(join(data, "below"), { recursive: true });
  await writeFile(join(data, "below/file"), "content");
  await chmod(join(data, "below/file"), 0o640);
  await symlink("/etc/passwd", join(data, "link"));
  await work(directory.path, data);
}

test("a volume is copied to a new directory, with modes, and links as links", async () => {
  await withData(async (directory, data) => {
    const copy = join(directory, "one");
    await copyOut(machine, data, copy, never);
    assert.deepEqual((await readdir(copy)).toSorted(), ["below", "link"]);
    assert.equal(await readFile(join(copy, "below/file"), "utf8"), "content");
    assert.equal((await lstat(join(copy, "below/file"))).mode & 0o777, 0o640);
    assert.ok((await lstat(join(copy, "link"))).isSymbolicLink());
  });
});

test("only root can reach the copy of data that was below a directory of root's", async () => {
  await withData(async (directory, data) => {
    await chmod(data, 0o777);
    for (const [name, mode] of [
      ["copy", 0o700],
      ["a.tar", 0o600],
      ["a.tgz", 0o600],
    ] as const) {
      await copyOut(machine, data, join(directory, name), never);
      assert.equal((await lstat(join(directory, name))).mode & 0o777, mode, name);
    }
    const there = join(directory, "there");
    await mkdir(there);
    await chmod(there, 0o750);
    await copyOut(machine, data, there, never);
    assert.equal((await lstat(there)).mode & 0o777, 0o750);
    assert.deepEqual((await readdir(there)).toSorted(), ["below", "link"]);
  });
});

test("a volume is copied to an archive, compressed if it is called so", async () => {
  await withData(async (directory, data) => {
    for (const name of ["a.tar", "a.tar.gz", "a.tgz"]) {
      const archive = join(directory, name);
      await copyOut(machine, data, archive, never);
      const listed = await systemProcesses.run("tar", ["-tf", archive], { timeoutMs: 10_000 });
      assert.deepEqual(listed.stdout.split("\n").toSorted(), ["", "./", "./below/", "./below/file", "./link"]);
      assert.equal((await readFile(archive)).subarray(0, 2).toString("hex") === "1f8b", name !== "a.tar");
    }
  });
});

test("a missing directory of the destination is not made, but named", async () => {
  await withData(async (directory, data) => {
    for (const name of ["none/below/copy", "none/a.tgz"]) {
      await assert.rejects(copyOut(machine, data, join(directory, name), never), (error: unknown) => {
        assert.ok(error instanceof PodwrightError);
        assert.ok(error.message.endsWith(`: ${join(directory, "none")} does not exist`), error.message);
        return true;
      });
    }
    assert.deepEqual(await readdir(directory), ["data"]);
  });
});

test("nothing is overwritten", async () => {
  await withData(async (directory, data) => {
    const archive = join(directory, "there.tar");
    await writeFile(archive, "mine");
    await assert.rejects(copyOut(machine, data, archive, never), /there.tar already exists$/u);
    assert.equal(await readFile(archive, "utf8"), "mine");
    await assert.rejects(copyOut(machine, data, data, never), /data already exists and is not an empty directory/u);
  });
});

test("data is never copied into itself, under any name", async () => {
  await withData(async (directory, data) => {
    await symlink(join(data, "below"), join(directory, "alias"));
    for (const destination of ["data/copy", "data/below/a.tar", "alias/copy"]) {
      const inside = copyOut(machine, data, join(directory, destination), never);
      await assert.rejects(inside, /is in the claim's own data$/u, destination);
    }
    await mkdir(join(data, "empty"));
    await assert.rejects(copyOut(machine, data, join(data, "empty"), never), /is in the claim's own data$/u);
    assert.deepEqual((await readdir(data)).toSorted(), ["below", "empty", "link"]);
    assert.deepEqual(await readdir(join(data, "below")), ["file"]);
  });
});

test("a copy that fails leaves nothing", async () => {
  await withData(async (directory, data) => {
    await mkdir(join(directory, "empty"));
    const run: Processes["run"] = async (program, words, options) => {
      // Its data is gone when the program looks for it.
      const given = words.map((word) => (/^(?:\.|.*\/\.)$/u.test(word) ? "gone" : word));
      return await systemProcesses.run(program, given, options);
    };
    const failing = { ...machine, processes: { ...systemProcesses, run } };
    for (const name of ["none.tar", "none", "empty"]) {
      await assert.rejects(copyOut(failing, data, join(directory, name), never), (error: unknown) => {
        assert.ok(error instanceof PodwrightError);
        assert.match(error.message, /cannot copy .*data to .*: (?:tar|cp): .*gone/u);
        return true;
      });
    }
    assert.deepEqual((await readdir(directory)).toSorted(), ["data", "empty"]);
    assert.deepEqual(await readdir(join(directory, "empty")), []);
  });
});

test("a copy that is interrupted, or fails halfway, removes everything that it wrote", async () => {
  await withData(async (directory, data) => {
    await mkdir(join(directory, "empty"), { mode: 0o750 });
    const halfway = (target: string, interrupt: AbortController | undefined): Processes => ({
      ...systemProcesses,
      run: async (program, words, options) => {
        if (program !== "cp") return await systemProcesses.run(program, words, options);
        const into = words.at(-1) ?? "";
        // A name need not be UTF-8.
        await writeFile(Buffer.concat([Buffer.from(`${into}/`), Buffer.from([0xff])]), "half");
        await chmod(into, 0o2777);
        interrupt?.abort(new Error("interrupted"));
        if (interrupt !== undefined) throw interrupt.signal.reason;
        return { exitCode: 1, signal: undefined, stdout: "", stderr: `cp: ${target}: No space left on device` };
      },
    });
    for (const name of ["new", "empty"]) {
      const interrupt = new AbortController();
      const machineOf = (abort?: AbortController): typeof machine => ({ ...machine, processes: halfway(name, abort) });
      const to = join(directory, name);
      await assert.rejects(copyOut(machineOf(), data, to, never), /No space left on device$/u);
      await assert.rejects(copyOut(machineOf(interrupt), data, to, interrupt.signal), /^Error: interrupted$/u);
    }
    assert.deepEqual((await readdir(directory)).toSorted(), ["data", "empty"]);
    assert.deepEqual(await readdir(join(directory, "empty")), []);
    assert.equal((await lstat(join(directory, "empty"))).mode & 0o7777, 0o750);
  });
});

/** cp(1) as it is, but it says that these problems occurred. */
function complaining(...lines: readonly string[]): typeof machine {
  const run: Processes["run"] = async (program, words, options) => {
    const result = await systemProcesses.run(program, words, options);
    if (program !== "cp") return result;
    assert.equal(options.environment?.["LC_ALL"], "C");
    return { ...result, exitCode: 1, stderr: `${lines.join("\n")}\n` };
  };
  return { ...machine, processes: { ...systemProcesses, run } };
}

test("files that a pod removed meanwhile are missing in the copy, which is complete otherwise", async () => {
  await withData(async (directory, data) => {
    const gone = [
      `cp: cannot stat '${data}/below/a.tmp': No such file or directory`,
      `cp: cannot open '${data}/./b c.tmp' for reading: No such file or directory`,
      `cp: cannot access '${data}/./dir': No such file or directory`,
      `cp: cannot read symbolic link '${data}/l': No such file or directory`,
    ];
    await copyOut(complaining(...gone), data, join(directory, "copy"), never);
    assert.deepEqual((await readdir(join(directory, "copy"))).toSorted(), ["below", "link"]);
    const others = {
      [`cp: cannot stat '${data}/.': No such file or directory`]: undefined,
      [`cp: cannot create regular file '${directory}/x/a': No such file or directory`]: undefined,
      [`cp: error reading '${data}/./a': Input/output error`]: undefined,
      [`cp: skipping file '${data}/./a', as it was replaced while being copied`]:
        "stop the pods that write to it, or copy to an archive (NAME.tar.gz)",
    };
    for (const [line, remedy] of Object.entries(others)) {
      await assert.rejects(
        copyOut(complaining(...gone, line), data, join(directory, "failed"), never),
        (error: unknown) => error instanceof PodwrightError && error.message.endsWith(line) && error.remedy === remedy,
        line,
      );
    }
    await assert.rejects(copyOut(complaining(), data, join(directory, "failed"), never), /cp ended by itself$/u);
    assert.deepEqual((await readdir(directory)).toSorted(), ["copy", "data"]);
  });
});

test("a destination with the name of an archive of another kind is refused, unless it is a directory already", async () => {
  await withData(async (directory, data) => {
    for (const name of ["a.tar.xz", "a.tar.zst", "a.tbz2", "a.txz", "a.zip", "a.gz", "a.TAR.GZ"]) {
      const copied = copyOut(machine, data, join(directory, name), never);
      await assert.rejects(copied, (error: unknown) => {
        assert.ok(error instanceof PodwrightError);
        assert.match(error.message, /archives are \.tar, \.tar\.gz or \.tgz$/u);
        return error.exitCode === 2;
      });
    }
    assert.deepEqual(await readdir(directory), ["data"]);
    await mkdir(join(directory, "there.zip"));
    for (const name of ["there.zip", "table", "my.tartan"]) await copyOut(machine, data, join(directory, name), never);
  });
});

test("holes of sparse files take no room in an archive", async () => {
  await withData(async (directory, data) => {
    await writeFile(join(data, "sparse"), "");
    await truncate(join(data, "sparse"), 100 << 20);
    await copyOut(machine, data, join(directory, "a.tar"), never);
    assert.ok((await lstat(join(directory, "a.tar"))).size < 1 << 20);
  });
});

test("a destination that cannot be written is named with the reason", async () => {
  await withData(async (directory, data) => {
    const readOnly = async (path: string): Promise<void> => {
      throw new FileError("EROFS", path, "EROFS: read-only file system, mkdir");
    };
    const files: Files = { ...systemFiles, makeDirectory: readOnly };
    const copied = copyOut({ ...machine, files }, data, join(directory, "one"), never);
    await assert.rejects(copied, (error: unknown) => {
      assert.ok(error instanceof PodwrightError);
      assert.match(error.message, /cannot copy .*one: EROFS: read-only file system/u);
      return error.exitCode === 3;
    });
  });
});

test("another copy's incomplete files are left alone", async () => {
  await withData(async (directory, data) => {
    const partial = join(directory, ".one.podwright-partial");
    await mkdir(partial);
    await assert.rejects(copyOut(machine, data, join(directory, "one"), never), /another copy is in progress/u);
    assert.deepEqual((await readdir(directory)).toSorted(), [".one.podwright-partial", "data"]);
  });
});

test("a volume whose path is a link is copied, never into itself, and a path that leads nowhere is an error for people", async () => {
  await withData(async (directory, data) => {
    const linked = join(directory, "linked");
    await symlink("data", linked);
    await copyOut(machine, linked, join(directory, "copy"), never);
    assert.equal(await readFile(join(directory, "copy/below/file"), "utf8"), "content");
    for (const inside of [join(linked, "copy"), join(data, "copy.tar")]) {
      await assert.rejects(copyOut(machine, linked, inside, never), /is in the claim's own data/);
    }
    for (const source of [join(directory, "missing"), join(directory, "x".repeat(300))]) {
      const failure = copyOut(machine, source, join(directory, "other"), never);
      await assert.rejects(
        failure,
        (error) => error instanceof PodwrightError && error.message.startsWith("cannot copy"),
      );
    }
  });
});
