import assert from "node:assert/strict";
import { test } from "node:test";
import { runLife } from "../sim/life/life.ts";
import { recordingHeader, recordingLine } from "./flight-recorder.ts";
import type { Decided } from "./format.ts";
import { replay } from "./replay.ts";

/** Among them lives of all kinds of decisions: the last one has resizes. */
const seeds = [...Array.from({ length: 12 }, (_, index) => index + 1), 20, 75];

/** What a decision has in it, by name. */
function kindsOf(decided: Decided): string[] {
  const named = Object.entries(decided).filter(([, value]) => !Array.isArray(value) || value.length > 0);
  return named.map(([name]) => name);
}

test("every recorded decision of simulated nodes is decided the same", async () => {
  const kinds = new Set<string>();
  for (const seed of seeds) {
    const lines = [recordingHeader("test", 0)];
    await runLife(seed, {
      recorder: { record: (decision) => void lines.push(recordingLine(decision, 0)) },
    });
    for (const line of lines.slice(1)) {
      for (const kind of kindsOf((JSON.parse(line) as { decided: Decided }).decided)) kinds.add(kind);
    }
    const { decisions, different, first } = replay(lines.join(""));
    assert.ok(decisions > 0 && decisions === lines.length - 1, `seed ${seed}`);
    assert.deepEqual([different, first], [0, undefined], `seed ${seed}`);
  }
  const missed = ["killPod", "createSandbox", "sandbox", "stop", "start", "wait", "resize"].filter(
    (kind) => !kinds.has(kind),
  );
  assert.deepEqual(missed, [], "the lives decided all there is to decide");
});
