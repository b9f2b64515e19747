import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { takeStateFormat } from "./state-format.ts";

async function directory(text?: string): Promise<MemoryFiles> {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/state", 0o700);
  if (text !== undefined) await files.writeAtomic("/state/format.json", text, 0o644);
  return files;
}

async function textOf(files: MemoryFiles): Promise<string> {
  return Buffer.from(await files.read("/state/format.json", 4096)).toString();
}

test("an older version's state, or a new directory, gets this version's format", async () => {
  for (const before of [undefined, '{"format":1,"podwright":"0.1.0"}', '{"format":1,"podwright":"9.0.0"}']) {
    const files = await directory(before);
    await takeStateFormat(files, "/state", "1.2.3");
    assert.equal(await textOf(files), '{"format":1,"podwright":"1.2.3"}\n');
  }
});

test("state of a newer format is rejected, naming its writer, and stays unchanged", async () => {
  const text = '{"format":2,"podwright":"2.0.0"}';
  const files = await directory(text);
  await assert.rejects(takeStateFormat(files, "/state", "1.2.3"), {
    message: "podwright 2.0.0 wrote /state in format 2; podwright 1.2.3 reads formats up to 1",
    remedy: "install a podwright that reads format 2, or use another --state-dir; nothing was changed",
  });
  assert.equal(await textOf(files), text);
});

test("a damaged format file is an error, not an old state", async () => {
  for (const text of ["", "{", '{"format":"1"}', "null"]) {
    await assert.rejects(takeStateFormat(await directory(text), "/state", "1.2.3"), /format\.json is damaged/u);
  }
});
