import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { FileError } from "../ports/files.ts";
import { MemoryFiles } from "../sim/files.ts";
import { simHashing } from "../sim/hashing.ts";
import { PullIntents } from "./pull-intents.ts";

const image = "r.io/app:1";
const marker = `/pulling/sha256-${simHashing.sha256(image)}`;
const diskFails = async (): Promise<never> => {
  throw new FileError("EIO", "/", "EIO: the disk fails");
};
const disk = (): MemoryFiles => new MemoryFiles(new ManualClock());
const open = (files: MemoryFiles): PullIntents =>
  new PullIntents({ files, hashing: simHashing, log: silentLog }, "/pulling");
const isThere = async (files: MemoryFiles): Promise<boolean> => (await files.stat(marker)) !== undefined;

test("a pull that ends while another one is marked leaves its marker", async (t) => {
  const files = disk();
  const intents = open(files);
  await intents.begin(image);
  const write = files.writeAtomic.bind(files);
  const written = Promise.withResolvers<void>();
  t.mock.method(files, "writeAtomic", async (path: string, data: string, mode: number) => {
    await write(path, data, mode);
    await written.promise;
  });
  const second = intents.begin(image);
  const firstEnd = intents.end(image, "recorded");
  written.resolve();
  await Promise.all([second, firstEnd]);
  assert.equal(await isThere(files), true);
  assert.equal(await intents.has([image]), true);
  await intents.end(image, "recorded");
  assert.equal(await isThere(files), false);
  assert.equal(await intents.has([image]), false);
});

test("a pull that is marked while the marker of another one is removed has its own", async (t) => {
  const files = disk();
  const intents = open(files);
  await intents.begin(image);
  const unlink = files.remove.bind(files);
  const removed = Promise.withResolvers<void>();
  t.mock.method(files, "remove", async (path: string) => {
    await removed.promise;
    await unlink(path);
  });
  const firstEnd = intents.end(image, "failed");
  const second = intents.begin(image);
  removed.resolve();
  await Promise.all([firstEnd, second]);
  assert.equal(await isThere(files), true);
  assert.equal(await intents.has([image]), true);
});

test("after an unknown outcome, also of an earlier run, a failure leaves the marker, and a record removes it", async () => {
  const files = disk();
  const first = open(files);
  await first.begin(image);
  await first.begin(image);
  await first.end(image, "unknown");
  await first.end(image, "failed");
  const next = open(files);
  for (const intents of [first, next]) {
    assert.equal(await intents.has([image]), true);
    await intents.begin(image);
    await intents.end(image, "failed");
    assert.equal(await isThere(files), true);
  }
  await next.begin(image);
  await next.end(image, "recorded");
  assert.equal(await isThere(files), false);
  assert.equal(await next.has([image]), false);
});

test("a marker that cannot be written or removed counts as long as it is there", async (t) => {
  const files = disk();
  const intents = open(files);
  t.mock.method(files, "writeAtomic", diskFails, { times: 1 });
  await assert.rejects(intents.begin(image), FileError);
  assert.equal(await intents.has([image]), false);
  await intents.begin(image);
  t.mock.method(files, "remove", diskFails, { times: 1 });
  await intents.end(image, "failed");
  assert.equal(await intents.has([image]), true);
  assert.equal(await open(files).has([image]), true);
});

test("a marker that could not be read is read again when it matters", async (t) => {
  const files = disk();
  await open(files).begin(image);
  const intents = open(files);
  t.mock.method(files, "read", diskFails, { times: 2 });
  assert.equal(await intents.has([image]), "unknown");
  assert.equal(await intents.has([image]), true);
  await files.write(marker, "no json", 0o600);
  const last = open(files);
  assert.equal(await last.has([image]), "unknown");
  await last.begin(image);
  await last.end(image, "failed");
  assert.equal(await last.has([image]), true, "what the marker was there for may have been pulled");
  await last.begin(image);
  await last.end(image, "recorded");
  assert.equal(await last.has([image]), false);
});
