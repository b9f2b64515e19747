import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { FileError } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { MemoryFiles } from "../sim/files.ts";
import { KeptEvictions } from "./kept-evictions.ts";

const path = "/state/engine.json";

async function scene(): Promise<{ files: MemoryFiles; warnings: string[]; kept: () => KeptEvictions }> {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/state", 0o711);
  const warnings: string[] = [];
  const log: Logger = {
    debug: () => {},
    info: () => {},
    warn: (message) => void warnings.push(message),
    error: () => assert.fail("no error is expected"),
    child: () => log,
  };
  return { files, warnings, kept: () => new KeptEvictions(files, log, path) };
}

test("evictions that one engine was asked for hold for the next one, until they are turned off or forgotten", async () => {
  const { kept, warnings } = await scene();
  assert.equal(await kept().take(undefined), false);
  assert.equal(await kept().take(true), true);
  assert.equal(await kept().take(undefined), true);
  assert.equal(await kept().take(false), false);
  assert.equal(await kept().take(undefined), false);
  await kept().take(true);
  await kept().forget();
  await kept().forget();
  assert.equal(await kept().take(undefined), false);
  assert.deepEqual(warnings, []);
});

test("a full disk or a damaged record prevents no start", async () => {
  const { files, kept, warnings } = await scene();
  await files.write(path, "{", 0o600);
  assert.equal(await kept().take(undefined), false);
  files.writeAtomic = async () => Promise.reject(new FileError("ENOSPC", path, "no space left"));
  assert.equal(await kept().take(true), true);
  assert.deepEqual(warnings, [
    "cannot read whether evictions were on",
    "cannot read whether evictions were on",
    "cannot record whether evictions are on",
  ]);
});
