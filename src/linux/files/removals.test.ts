import assert from "node:assert/strict";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { describe, test } from "node:test";
import { systemClock } from "../processes/clock.ts";
import { watchRemovals } from "./removals.ts";
import { type TestDirectory, testDirectory } from "../processes/testing.ts";
import { watchEntries } from "./watch.ts";

type Join = TestDirectory["join"];

/** What people and programs do to a.yaml, and whether inotify, and so the Go kubelet, counts its name as removed. */
const deeds: readonly [what: string, does: (join: Join) => void, removed: readonly string[]][] = [
  ["deleted", (join) => unlinkSync(join("a.yaml")), ["a.yaml"]],
  ["moved out", (join) => renameSync(join("a.yaml"), join("../a.yaml")), ["a.yaml"]],
  [
    "moved out and back",
    (join) => {
      renameSync(join("a.yaml"), join("../a.yaml"));
      renameSync(join("../a.yaml"), join("a.yaml"));
    },
    ["a.yaml"],
  ],
  [
    "deleted and written again",
    (join) => {
      unlinkSync(join("a.yaml"));
      writeFileSync(join("a.yaml"), "one");
    },
    ["a.yaml"],
  ],
  ["renamed", (join) => renameSync(join("a.yaml"), join("b.yaml")), ["a.yaml"]],
  ["renamed to a hidden name", (join) => renameSync(join("a.yaml"), join(".a.yaml")), ["a.yaml"]],
  [
    "saved by vim: a backup is moved away, the file written and the backup deleted",
    (join) => {
      renameSync(join("a.yaml"), join("a.yaml~"));
      writeFileSync(join("a.yaml"), "two");
      chmodSync(join("a.yaml"), 0o600);
      unlinkSync(join("a.yaml~"));
    },
    ["a.yaml", "a.yaml~"],
  ],
  [
    "saved by emacs: a backup is moved away, a new file moved into its place",
    (join) => {
      symlinkSync("me@here", join(".#a.yaml"));
      renameSync(join("a.yaml"), join("a.yaml~"));
      writeFileSync(join("a.yaml"), "two");
      unlinkSync(join(".#a.yaml"));
    },
    ["a.yaml", ".#a.yaml"],
  ],
  [
    "edited by sed -i: a new file is moved onto it",
    (join) => {
      writeFileSync(join("sedX4f2a"), "two");
      renameSync(join("sedX4f2a"), join("a.yaml"));
    },
    ["sedX4f2a"],
  ],
  [
    "replaced from another directory, as by mv",
    (join) => {
      writeFileSync(join("../new.yaml"), "two");
      renameSync(join("../new.yaml"), join("a.yaml"));
    },
    [],
  ],
  ["written over, as by cp and shells", (join) => writeFileSync(join("a.yaml"), "two"), []],
  ["copied over", (join) => copyFileSync(join("../spare"), join("a.yaml")), []],
  ["appended to", (join) => appendFileSync(join("a.yaml"), "more"), []],
  ["emptied", (join) => truncateSync(join("a.yaml")), []],
  ["given another mode", (join) => chmodSync(join("a.yaml"), 0o640), []],
  [
    "unpacked by tar or kubectl cp: unlinked first",
    (join) => {
      unlinkSync(join("a.yaml"));
      copyFileSync(join("../spare"), join("a.yaml"));
    },
    ["a.yaml"],
  ],
  [
    "upgraded by kubeadm: the old one is moved to a backup, the new one moved in",
    (join) => {
      renameSync(join("a.yaml"), join("../backup.yaml"));
      renameSync(join("../spare"), join("a.yaml"));
    },
    ["a.yaml"],
  ],
  [
    "one of two hard links, the other of which is deleted",
    (join) => {
      linkSync(join("a.yaml"), join("b.yaml"));
      unlinkSync(join("b.yaml"));
    },
    ["b.yaml"],
  ],
  [
    "a link to ..data, which is moved onto as in a ConfigMap's volume",
    (join) => {
      unlinkSync(join("a.yaml"));
      mkdirSync(join("..one"));
      writeFileSync(join("..one/a.yaml"), "one");
      symlinkSync("..one", join("..data"));
      symlinkSync("..data/a.yaml", join("a.yaml"));
      mkdirSync(join("..two"));
      writeFileSync(join("..two/a.yaml"), "two");
      symlinkSync("..two", join("..data_tmp"));
      renameSync(join("..data_tmp"), join("..data"));
      assert.equal(readlinkSync(join("..data")), "..two");
    },
    ["a.yaml", "..data_tmp"],
  ],
  [
    "beside a directory that is made and removed with what is in it",
    (join) => {
      mkdirSync(join("sub"));
      writeFileSync(join("sub/a.yaml"), "one");
      rmSync(join("sub"), { recursive: true });
    },
    ["sub"],
  ],
];

/** The directory to watch, with a.yaml in it; ../spare is another manifest. */
function manifests(): { readonly path: string; readonly join: Join } & Disposable {
  const directory = testDirectory();
  const path = directory.join("manifests");
  mkdirSync(path);
  writeFileSync(directory.join("manifests/a.yaml"), "one");
  writeFileSync(directory.join("spare"), "two");
  return {
    path,
    join: (name) => directory.join(`manifests/${name}`),
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  };
}

/** A Node.js that cannot call C functions. */
const withoutCalls = (): never => {
  throw new Error("No such built-in module: node:ffi");
};

describe("inotify reports removed names", () => {
  for (const [what, does, removed] of deeds) {
    test(what, () => {
      using directory = manifests();
      using removals = watchRemovals(directory.path);
      does(directory.join);
      assert.deepEqual(removals.take(), new Set(removed));
      assert.deepEqual(removals.take(), new Set(), "told once");
    });
  }

  test("long names and thousands of them", () => {
    using directory = manifests();
    using removals = watchRemovals(directory.path);
    const names = Array.from({ length: 3000 }, (_, index) => `${index}-${"ä".repeat(100)}`);
    for (const name of names) {
      writeFileSync(directory.join(name), "");
      unlinkSync(directory.join(name));
    }
    assert.deepEqual(removals.take(), new Set(names));
  });

  test("a queue overflow loses removals without harm", () => {
    using directory = manifests();
    using removals = watchRemovals(directory.path);
    // Alternates between two names: the kernel merges repeated events.
    for (let round = 0; round < 20_000; round++) {
      const name = directory.join(round % 2 === 0 ? "x" : "y");
      writeFileSync(name, "");
      unlinkSync(name);
    }
    assert.deepEqual(removals.take(), new Set(["x", "y"]));
    unlinkSync(directory.join("a.yaml"));
    assert.deepEqual(removals.take(), new Set(["a.yaml"]));
  });

  test("also when the directory itself is removed", () => {
    using directory = manifests();
    using removals = watchRemovals(directory.path);
    rmSync(directory.path, { recursive: true });
    assert.deepEqual(removals.take(), new Set(["a.yaml"]));
  });

  test("and leaves no descriptor open", () => {
    using directory = manifests();
    const open = (): number => readdirSync("/proc/self/fd").length;
    watchRemovals(directory.path)[Symbol.dispose]();
    const before = open();
    for (let round = 0; round < 20; round++) watchRemovals(directory.path)[Symbol.dispose]();
    for (let round = 0; round < 20; round++) watchRemovals(directory.join("missing"))[Symbol.dispose]();
    assert.equal(open(), before);
  });
});

test("on a Node.js without C functions, a name with two events counts as removed", () => {
  using directory = manifests();
  using removals = watchRemovals(directory.path, withoutCalls);
  for (const name of ["a.yaml", "b.yaml", "a.yaml"]) removals.saw("rename", name);
  for (const name of ["c.yaml", "c.yaml", null]) removals.saw("change", name);
  assert.deepEqual(removals.take(), new Set(["a.yaml"]));
  removals.saw("rename", "b.yaml");
  assert.deepEqual(removals.take(), new Set());
});

describe("a watch of entries", () => {
  const until = async (condition: () => boolean): Promise<void> => {
    for (let attempt = 0; attempt < 200 && !condition(); attempt++) await systemClock.sleep("a change", 10);
    assert.ok(condition());
  };

  test("reports names that disappeared and returned within one burst, and none that were replaced", async () => {
    using directory = manifests();
    const told: ReadonlySet<string>[] = [];
    using _watch = watchEntries(
      directory.path,
      (removed) => told.push(removed),
      () => {},
    );
    renameSync(directory.join("a.yaml"), directory.join("../a.yaml"));
    renameSync(directory.join("../a.yaml"), directory.join("a.yaml"));
    await until(() => told.length === 1);
    writeFileSync(directory.join("../new"), "two");
    renameSync(directory.join("../new"), directory.join("a.yaml"));
    await until(() => told.length === 2);
    assert.deepEqual(told, [new Set(["a.yaml"]), new Set()]);
  });

  test("reports them before its end when the directory is removed or replaced", async () => {
    for (const isMadeAnew of [false, true]) {
      using directory = manifests();
      const told: unknown[] = [];
      using _watch = watchEntries(
        directory.path,
        (removed) => told.push(removed),
        (error) => told.push(error.name),
      );
      rmSync(directory.path, { recursive: true });
      if (isMadeAnew) {
        mkdirSync(directory.path);
        writeFileSync(directory.join("a.yaml"), "one");
      }
      await until(() => told.length === 2);
      assert.deepEqual(told, [new Set(["a.yaml"]), "FileError"]);
    }
  });
});
