import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { simCompression } from "../sim/compression.ts";
import { MemoryFiles } from "../sim/files.ts";
import { type LogStore, readLog } from "./reader.ts";

const path = "/logs/web/0.log";
const raw = (text: string): string => `2026-11-20T14:02:00.000000001Z stdout F ${text}\n`;

/** A log that can be removed, also between a read's look at the file and the read. */
class Scene {
  readonly files = new MemoryFiles(new ManualClock());
  removesBeforeRead = false;

  async write(name: string, text: string): Promise<void> {
    await this.files.makeDirectory("/logs/web", 0o755);
    await this.files.write(`/logs/web/${name}`, text, 0o640);
  }

  async remove(): Promise<void> {
    await this.files.removeTree("/logs/web");
  }

  /** Reads the log; each line calls back. */
  async read(tailLines?: number, onLine = async (): Promise<void> => {}): Promise<string[]> {
    const { files } = this;
    const store: LogStore = {
      compression: simCompression(files),
      files: {
        stat: (name) => files.stat(name),
        list: (name) => files.list(name),
        watch: (...watched) => files.watch(...watched),
        readRange: async (...range) => {
          if (this.removesBeforeRead) await this.remove();
          return await files.readRange(...range);
        },
      },
    };
    const seen: string[] = [];
    for await (const line of readLog(store, path, tailLines === undefined ? {} : { tailLines })) {
      seen.push(new TextDecoder().decode(line.text));
      await onLine();
    }
    return seen;
  }
}

test("a log that is removed before it is read is not an empty log", async () => {
  for (const tailLines of [undefined, 5]) {
    const scene = new Scene();
    await scene.write("0.log", raw("one"));
    scene.removesBeforeRead = true;
    await assert.rejects(scene.read(tailLines), { code: "ENOENT" });
  }
});

test("a log that is removed while it is read is not a shorter log", async () => {
  const scene = new Scene();
  const lines = Array.from({ length: 20_000 }, (_, index) => raw(`line ${index}`));
  await scene.write("0.log", lines.join(""));
  let seen = 0;
  const reading = scene.read(undefined, async () => {
    if (seen++ === 0) await scene.remove();
  });
  await assert.rejects(reading, { code: "ENOENT", message: `the log ${path} was removed while it was read` });
  assert.ok(seen > 0 && seen < lines.length, `${seen} lines`);
});

test("a log that is removed after all of it was read, or that is empty, has an end", async () => {
  const scene = new Scene();
  await scene.write("0.log", "");
  assert.deepEqual(await scene.read(), []);
  await scene.write("0.log", raw("one"));
  assert.deepEqual(await scene.read(undefined, () => scene.remove()), ["one"]);
  await scene.write("0.log.20261120-140000", raw("rotated"));
  assert.deepEqual(await scene.read(0), []);
});
