import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { uptime } from "node:os";
import { test } from "node:test";
import type { KernelLine } from "../../ports/kernel-log.ts";
import { systemClock } from "./clock.ts";
import { systemKernelLog } from "./kernel-log.ts";
import { needsRoot, testDirectory } from "./testing.ts";

async function firstOf(path?: string): Promise<string | undefined> {
  const stop = new AbortController();
  for await (const { text } of systemKernelLog(systemClock, path).follow(undefined, stop.signal)) return text;
  return undefined;
}

test("a missing file, or one that is not a kernel log, is an error with its path", async () => {
  using directory = testDirectory();
  await assert.rejects(firstOf(directory.join("none")), {
    name: "FileError",
    code: "ENOENT",
    path: directory.join("none"),
  });
  await assert.rejects(firstOf(directory.path), { name: "FileError", code: "EISDIR" });
});

test("messages of programs count as theirs, and old messages are skipped", { skip: needsRoot() }, async () => {
  const stop = new AbortController();
  const messages: string[] = [];
  const log = systemKernelLog(systemClock);
  const following = (async () => {
    for await (const { text } of log.follow(undefined, stop.signal)) messages.push(text);
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
});

test("messages after a given one are repeated on request", { skip: needsRoot() }, async () => {
  const log = systemKernelLog(systemClock);
  const begin = async (after: number | undefined): Promise<KernelLine[]> => {
    const stop = new AbortController();
    const lines: KernelLine[] = [];
    for await (const line of log.follow(after, stop.signal)) {
      lines.push(line);
      if (after === undefined || lines.length > 1) break;
    }
    return lines;
  };
  const [mark] = await begin(undefined);
  assert.equal(mark?.text, "");
  assert.ok(mark.sequence > 0);
  // The kernel's earlier messages are there, unless programs have overwritten them.
  const [again, next] = await begin(Math.max(0, mark.sequence - 2000));
  assert.equal(again?.text, "");
  assert.ok(next === undefined || next.sequence > again.sequence);
  assert.ok(next === undefined || (next.atMs >= 0 && next.atMs <= uptime() * 1000), "in ms since the boot");
});
