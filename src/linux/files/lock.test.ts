import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { FileError } from "../../ports/files.ts";
import { openLocks, readHolder, systemLocks } from "./lock.ts";
import { testDirectory } from "../processes/testing.ts";

const moduleUrl = new URL("./lock.ts", import.meta.url).href;

/** Another process that holds the lock from when this resolves until it is killed. */
async function holderProcess(path: string): Promise<ChildProcess> {
  const script = `
    import { systemLocks } from ${JSON.stringify(moduleUrl)};
    const lock = await systemLocks.tryLock(${JSON.stringify(path)});
    console.log(lock === undefined ? "refused" : "held");
    setInterval(() => {}, 60_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output]: unknown[] = await once(child.stdout, "data");
  assert.equal(String(output), "held\n");
  return child;
}

/** True when a process unrelated to podwright can take the lock. */
function isFree(path: string): boolean {
  return spawnSync("flock", ["-n", "-x", path, "true"]).status === 0;
}

/** A Node.js without system calls uses flock(1). */
const withoutCalls = openLocks(() => undefined);

for (const [way, locks] of [
  ["the kernel's call", systemLocks],
  ["flock(1)", withoutCalls],
] as const) {
  test(`a lock taken by ${way} is held until it is disposed of`, async () => {
    using directory = testDirectory();
    const path = directory.join("lock");
    {
      using lock = await locks.tryLock(path);
      assert.ok(lock !== undefined);
      assert.equal(isFree(path), false);
      assert.equal(await systemLocks.tryLock(path), undefined);
      assert.equal(await withoutCalls.tryLock(path), undefined);
      assert.equal(statSync(path).mode & 0o7777, 0o600);
    }
    assert.equal(isFree(path), true);
    assert.equal(await locks.holder(path), undefined);
    const again = await locks.tryLock(path);
    assert.ok(again !== undefined);
    again[Symbol.dispose]();
    again[Symbol.dispose]();
  });
}

test("releasing a lock removes its file, but not one that others lock", async () => {
  using directory = testDirectory();
  const [own, shared] = [directory.join("own"), directory.join("shared")];
  const locks = [await systemLocks.tryOwnLock(own), await systemLocks.tryLock(shared)];
  assert.equal(await systemLocks.tryOwnLock(own), undefined);
  for (const lock of locks) lock?.[Symbol.dispose]();
  for (const lock of locks) lock?.[Symbol.dispose]();
  assert.deepEqual([existsSync(own), existsSync(shared)], [false, true]);
  const [first] = [await systemLocks.tryOwnLock(own)];
  rmSync(own);
  using second = await systemLocks.tryOwnLock(own);
  assert.ok(second !== undefined, "somebody has removed the file, so it is another lock");
  first?.[Symbol.dispose]();
  assert.equal(existsSync(own), true, "the other's file is left alone");
  assert.equal(await systemLocks.tryOwnLock(own), undefined);
});

test(
  "processes that take and give back an own lock never hold it at once, and leave no file",
  { timeout: 60_000 },
  async () => {
    using directory = testDirectory();
    const path = directory.join("lock");
    const inside = directory.join("inside");
    // Each makes a directory while it holds the lock: that fails when another one is there.
    const script = `
    import { mkdirSync, rmdirSync } from "node:fs";
    import { systemLocks } from ${JSON.stringify(moduleUrl)};
    for (let taken = 0; taken < 300; ) {
      const lock = await systemLocks.tryOwnLock(${JSON.stringify(path)});
      if (lock === undefined) continue;
      mkdirSync(${JSON.stringify(inside)});
      rmdirSync(${JSON.stringify(inside)});
      lock[Symbol.dispose]();
      taken++;
    }`;
    const children = [1, 2, 3].map(() =>
      spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "ignore", "inherit"] }),
    );
    const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0] as unknown));
    assert.deepEqual(codes, [0, 0, 0]);
    assert.equal(existsSync(path), false);
  },
);

test("without flock(1), a lock that the kernel refuses is held by another, and one that cannot be requested is an error", async (context) => {
  using directory = testDirectory();
  const path = directory.join("lock");
  using _held = await systemLocks.tryLock(path);
  const { PATH } = process.env;
  context.after(() => (process.env.PATH = PATH));
  process.env.PATH = directory.join("nothing");
  const refused = await systemLocks.tryLock(path).catch((error: unknown) => error);
  await assert.rejects(withoutCalls.tryLock(path), /cannot run flock, which locks files/u);
  if (process.getBuiltinModule("node:ffi") === undefined) assert.match(String(refused), /cannot run flock/u);
  else assert.equal(refused, undefined);
});

test("the holder is reported by pid and command line", async () => {
  using directory = testDirectory();
  const path = directory.join("lock");
  assert.equal(readHolder(path), undefined);
  using _lock = await systemLocks.tryLock(path);
  const holder = readHolder(path);
  assert.equal(holder?.pid, process.pid);
  assert.match(holder?.command ?? "", /lock\.test\.ts/);
  assert.equal(await systemLocks.holder(path), process.pid);
});

test("another process cannot take it, and kill -9 of the holder releases it", async () => {
  using directory = testDirectory();
  const path = directory.join("lock");
  const other = await holderProcess(path);
  try {
    assert.equal(await systemLocks.tryLock(path), undefined);
    assert.equal(await systemLocks.holder(path), other.pid);
    const exited = once(other, "exit");
    other.kill("SIGKILL");
    await exited;
    assert.equal(await systemLocks.holder(path), undefined);
    using lock = await systemLocks.tryLock(path);
    assert.ok(lock !== undefined);
  } finally {
    other.kill("SIGKILL");
  }
});

test("programs started by the holder do not keep the lock", async () => {
  using directory = testDirectory();
  const path = directory.join("lock");
  const lock = await systemLocks.tryLock(path);
  const child = spawn("sleep", ["60"], { stdio: "ignore", detached: true });
  try {
    await once(child, "spawn");
    lock?.[Symbol.dispose]();
    assert.equal(isFree(path), true);
  } finally {
    child.kill("SIGKILL");
  }
});

test("contents left by a dead or unrelated process name no holder", () => {
  using directory = testDirectory();
  const path = directory.join("lock");
  for (const text of [
    "",
    "nonsense",
    "0\n1\nx\n",
    "-1\n1\nx\n",
    `${process.pid}\n1\nanother process\n`,
    "4194304\n1\nx\n",
  ]) {
    writeFileSync(path, text);
    assert.equal(readHolder(path), undefined, text);
  }
});

test("a removed lock file is recreated, and a link in its place is rejected", async () => {
  using directory = testDirectory();
  const path = directory.join("lock");
  using first = await systemLocks.tryLock(path);
  rmSync(path);
  using second = await systemLocks.tryLock(path);
  assert.ok(first !== undefined && second !== undefined);

  writeFileSync(directory.join("target"), "untouched");
  symlinkSync("target", directory.join("link"));
  await assert.rejects(systemLocks.tryLock(directory.join("link")), (error) => {
    return error instanceof FileError && error.code === "ELOOP";
  });
  assert.equal(readFileSync(directory.join("target"), "utf8"), "untouched");
});
