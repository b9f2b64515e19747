import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { systemClock } from "./clock.ts";

const moduleUrl = new URL("./clock.ts", import.meta.url).href;

/** Runs a script with `systemClock` in its own process. */
function runScript(script: string): { code: number | null; output: string; elapsedMs: number } {
  const started = performance.now();
  const source = `import { systemClock } from ${JSON.stringify(moduleUrl)};\n${script}`;
  const child = spawnSync(process.execPath, ["--input-type=module", "-e", source], {
    encoding: "utf8",
    timeout: 20_000,
  });
  return { code: child.status, output: child.stdout, elapsedMs: performance.now() - started };
}

test("a timer calls back once, asynchronously and not early", async () => {
  for (const delayMs of [0, 1, 5, 12.5]) {
    const { promise, resolve } = Promise.withResolvers<number>();
    const started = systemClock.monotonic();
    let synchronous = true;
    let calls = 0;
    using _keep = keepAlive();
    systemClock.timer("test", delayMs, () => {
      calls++;
      assert.equal(synchronous, false);
      resolve(systemClock.monotonic() - started);
    });
    synchronous = false;
    assert.ok((await promise) >= delayMs);
    await systemClock.sleep("any second call", 5);
    assert.equal(calls, 1);
  }
});

test("a disposed timer never calls back, and disposing it twice or late has no effect", async () => {
  let calls = 0;
  const timers = [0, 1, 10].map((delayMs) => systemClock.timer("test", delayMs, () => calls++));
  for (const timer of [...timers, ...timers]) timer[Symbol.dispose]();
  await systemClock.sleep("they would have fired", 20);
  assert.equal(calls, 0);

  const fired = systemClock.timer("test", 0, () => calls++);
  await systemClock.sleep("it fires", 5);
  fired[Symbol.dispose]();
  assert.equal(calls, 1);
});

test("a delay above Node's limit of 2^31-1 ms does not fire at once", async () => {
  let calls = 0;
  using _month = systemClock.timer("a month", 31 * 86_400_000, () => calls++);
  using _never = systemClock.timer("never", Infinity, () => calls++);
  await systemClock.sleep("they would have fired", 20);
  assert.equal(calls, 0);
  assert.throws(() => systemClock.timer("broken", Number.NaN, () => {}), RangeError);
});

test("sleep rejects with the reason as soon as its signal aborts", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const sleeping = systemClock.sleep("an hour", 3_600_000, controller.signal);
  controller.abort(reason);
  await assert.rejects(sleeping, reason);
  await assert.rejects(systemClock.sleep("an hour", 3_600_000, controller.signal), reason);
});

test("pending waits are listed by name, the nearest first, until they end", async () => {
  {
    using _late = systemClock.timer("listed late", 60_000, () => {});
    using _soon = systemClock.timer("listed soon", 30_000, () => {});
    assert.deepEqual(listed(), ["listed soon", "listed late"]);
  }
  assert.deepEqual(listed(), []);
  await systemClock.sleep("listed sleep", 1);
  assert.deepEqual(listed(), []);
});

test("a pending timer lets a finished process end, a pending sleep does not", () => {
  const timer = runScript(`systemClock.timer("a minute", 60_000, () => {}); systemClock.timer("soon", 0, () => {});`);
  assert.equal(timer.code, 0);
  assert.ok(timer.elapsedMs < 15_000);

  const sleep = runScript(`await systemClock.sleep("a moment", 50); console.log("slept");`);
  assert.equal(sleep.code, 0);
  assert.equal(sleep.output, "slept\n");
});

/** Keeps the test's process alive, which a timer of the clock alone does not. */
function keepAlive(): Disposable {
  const timer = setTimeout(() => {}, 10_000);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** The names of this test's pending waits. */
function listed(): string[] {
  const names = systemClock.waits().map((wait) => wait.name);
  return names.filter((name) => name.startsWith("listed"));
}
