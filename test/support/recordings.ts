import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Replay, replay } from "../../src/replay/replay.ts";

/** Where recordings from the field become tests (docs/replay.md). */
export const recordingsDirectory = join(import.meta.dirname, "../fixtures/recordings");

/** Repeats the decisions of a recording in test/fixtures/recordings/. */
export function replayFixture(name: string): Replay {
  return replay(readFileSync(join(recordingsDirectory, name), "utf8"));
}
