import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { plainPaint } from "../journal/text.ts";
import { recordingsDirectory, replayFixture } from "../../test/support/recordings.ts";
import { replayText } from "./describe.ts";

for (const name of readdirSync(recordingsDirectory)) {
  test(`a real node's decisions are still decided the same: ${name}`, () => {
    const result = replayFixture(name);
    assert.ok(result.decisions > 0);
    assert.equal(result.different, 0, replayText(result, plainPaint).join("\n"));
  });
}
