import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { systemClock } from "./clock.ts";
import { systemKernelLog } from "./kernel-log.ts";
import { needsRoot, testDirectory } from "./testing.ts";

async function firstOf(path?: string): Promise<string | undefined> {
  const stop = new AbortController();
  for await (const message of systemKernelLog(systemClock, path).follow(stop.signal)) return message;
  return undefined;
}

test("what is not there, or is no kernel's log, is an error with its path", async () => {
  using directory = testDirectory();
  await assert.rejects(firstOf(directory.join("none")), {
    name: "FileError",
    code: "ENOENT",
    path: directory.join("none"),
  });
  await assert.rejects(firstOf(directory.path), { name: "FileError", code: "EISDIR" });
});

test(
  "what programs say in it is not the kernel's word, and old messages are left out",
  { skip: needsRoot() },
  async () => {
    const stop = new AbortController();
    const messages: string[] = [];
    const following = (async () => {
      for await (const message of systemKernelLog(systemClock).follow(stop.signal)) messages.push(message);
    })();
    await systemClock.sleep("the first look", 300);
    writeFileSync("/dev/kmsg", "<4>Out of memory: Killed process 1 (a test of podwright) total-vm:1kB");
    await systemClock.sleep("the next look", 1500);
    stop.abort(new Error("the test is over"));
    await following;
    assert.ok(!messages.some((message) => message.startsWith("Linux version")), "the kernel's first words");
    assert.ok(messages.length < 1000, `${messages.length} messages in two seconds`);
    assert.deepEqual(
      messages.filter((message) => message.includes("a test of podwright")),
      [],
    );
  },
);
