import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Happening } from "./happening.ts";
import { faultLines, stepLines, timeline } from "./timeline.ts";

const happenings: readonly Happening[] = [
  { atMs: 0.4, kind: "journal", text: "a life begins" },
  { atMs: 1000, kind: "step", text: "step 0: addPod", step: 0 },
  { atMs: 1000, kind: "deed", text: "wants pod0 (uid-0)\ncontainer c0", podUid: "uid-0", step: 0 },
  { atMs: 1500, kind: "struck", text: "call failed" },
  { atMs: 1600, kind: "runtime", text: "started uid-0/c0", podUid: "uid-0" },
  { atMs: 1700, kind: "journal", text: "of another pod", podUid: "uid-1" },
  { atMs: 2000, kind: "deed", text: "removes uid-0", podUid: "uid-0", step: 0 },
  { atMs: 2500.25, kind: "struck", text: "call failed" },
  { atMs: 9000, kind: "struck", text: "disk full" },
];
const problem = { rule: "back-off", detail: "uid-0/c0 restarted 776.5754 ms after 0.25 of all", atMs: 3000.7 };

describe("the timeline of a simulated life", () => {
  test("shows its pod up to a problem, with times in whole milliseconds", () => {
    assert.deepEqual(timeline(7, happenings, [problem], problem).split("\n"), [
      "seed 7",
      "        0 a life begins",
      "     1000 ---- step 0: addPod",
      "     1000 ----   wants pod0 (uid-0)",
      "                   container c0",
      "     1500 !!!! call failed",
      "     1600 true started uid-0/c0",
      "     2000 ----   removes uid-0",
      "     2500 !!!! call failed",
      "     3001 BROKEN back-off: uid-0/c0 restarted 777 ms after 0.25 of all",
    ]);
  });

  test("shows everything without a problem", () => {
    assert.equal(timeline(7, happenings, []).split("\n").length, happenings.length + 2);
  });

  test("shows the effects of each step, immediate and later ones", () => {
    const step = { atMs: 1000, kind: "addPod", seed: 1 } as const;
    assert.deepEqual(
      stepLines(
        [
          { ...step, index: 0 },
          { ...step, index: 4 },
        ],
        happenings,
      ),
      [
        "step 0 at 1000 ms: addPod",
        "  wants pod0 (uid-0)",
        "      container c0",
        "  removes uid-0 (at 2000 ms)",
        "step 4 at 1000 ms: addPod (not reached)",
      ],
    );
  });

  test("shows the faults until then", () => {
    assert.deepEqual(faultLines(happenings, 3000), ["call failed, 2 times, from 1500 to 2500 ms"]);
    assert.deepEqual(faultLines(happenings, 2000), ["call failed, at 1500 ms"]);
  });
});
