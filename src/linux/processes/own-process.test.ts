import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { setOomScoreAdjust } from "./own-process.ts";

test("podwright's own OOM score is set", async () => {
  // This process ends with this file; a higher score needs no privilege.
  await setOomScoreAdjust(700);
  assert.equal((await readFile("/proc/self/oom_score_adj", "utf8")).trim(), "700");
});
