import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { MeasuringThreads } from "./measuring-threads.ts";

test("calls that hang take at most three threads, and walks two of them", async () => {
  const threads = new MeasuringThreads();
  const stall = Promise.withResolvers<string>();
  let running = 0;
  const hang = async (): Promise<string> => {
    running++;
    return await stall.promise;
  };
  const walks = [1, 2, 3].map(async () => await threads.walk(hang));
  await setImmediate();
  assert.equal(running, 2);
  assert.equal(await threads.ask("/node", async () => "size"), "size", "file systems are asked all the same");
  const asked = ["/a", "/b"].map(async (path) => await threads.ask(path, hang));
  await setImmediate();
  assert.equal(running, 3);
  stall.resolve("late");
  assert.deepEqual(await Promise.all([...walks, ...asked]), Array(5).fill("late"));
});

test("a file system is asked by one call at a time", async () => {
  const threads = new MeasuringThreads();
  const stall = Promise.withResolvers<number>();
  const calls: string[] = [];
  const first = threads.ask("/disk", async () => {
    calls.push("first");
    return await stall.promise;
  });
  const second = threads.ask("/disk", async () => {
    calls.push("second");
    return 2;
  });
  await setImmediate();
  assert.deepEqual(calls, ["first"]);
  stall.resolve(1);
  assert.deepEqual(await Promise.all([first, second]), [1, 2]);
});
