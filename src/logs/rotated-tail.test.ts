import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { simCompression } from "../sim/compression.ts";
import { MemoryFiles } from "../sim/files.ts";
import { type LogStore, readLog } from "./reader.ts";

const path = "/logs/web/0.log";
const raw = (text: string): string => `2026-11-20T14:02:00.000000001Z stdout F ${text}\n`;

interface Rotation {
  /** Before which access of the reader the log is renamed. */
  readonly renamedAt: number;
  /** Before which one its successor is created. */
  readonly createdAt: number;
}

/** The last two lines of a log that is rotated once while it is read. */
async function tailDuring({ renamedAt, createdAt }: Rotation): Promise<string[]> {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/logs/web", 0o755);
  await files.write(path, Array.from({ length: 9 }, (_, index) => raw(`old ${index}`)).join(""), 0o640);
  let accesses = 0;
  const after = async <T>(access: () => Promise<T>): Promise<T> => {
    accesses++;
    if (accesses === renamedAt) await files.rename(path, `${path}.20261120-140000`);
    if (accesses === createdAt) await files.write(path, raw("new"), 0o640);
    return await access();
  };
  const store: LogStore = {
    compression: simCompression(files),
    files: {
      stat: (name) => after(() => files.stat(name)),
      list: (name) => after(() => files.list(name)),
      readRange: (...range) => after(() => files.readRange(...range)),
      watch: (...watched) => files.watch(...watched),
    },
  };
  const seen: string[] = [];
  for await (const { text } of readLog(store, path, { tailLines: 2 })) seen.push(new TextDecoder().decode(text));
  return seen;
}

test("a tail is no more than that, whenever the log is rotated while its beginning is sought", async () => {
  // Rotated after the search, during it, and before it.
  const possible = new Set(
    [
      ["old 7", "old 8"],
      ["old 7", "old 8", "new"],
      ["old 8", "new"],
    ].map(String),
  );
  for (let renamedAt = 1; renamedAt < 14; renamedAt++) {
    for (const createdAt of [renamedAt, renamedAt + 1, renamedAt + 2]) {
      const tail = await tailDuring({ renamedAt, createdAt });
      assert.ok(possible.has(String(tail)), `renamed at ${renamedAt}, created at ${createdAt}: ${String(tail)}`);
    }
  }
});
