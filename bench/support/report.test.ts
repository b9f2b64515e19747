import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { printReport, type Report } from "./report.ts";

const report: Report = {
  bench: "some",
  setting: ["on a machine"],
  columns: ["", "floor"],
  rows: [["1 pods", 12]],
  more: [{ columns: ["", "podwright", "kubelet"], rows: [["start", "224 ms", "519 ms"]] }],
  goals: [
    { name: "start", value: 0.43, atMost: 0.5, unit: "× other" },
    { name: "delete", value: 0.33, atMost: 0.25, unit: "× other" },
  ],
  measurements: {},
};

function printed(t: TestContext, asJson: boolean): { readonly text: string; readonly exitCode: unknown } {
  const lines: unknown[] = [];
  const log = t.mock.method(console, "log", (line: unknown) => void lines.push(line));
  try {
    printReport(report, asJson);
    return { text: lines.join("\n"), exitCode: process.exitCode };
  } finally {
    log.mock.restore();
    process.exitCode = undefined;
  }
}

test("a report has all its tables and a line for each goal, and a missed goal sets the exit code", (t) => {
  const { text, exitCode } = printed(t, false);
  assert.equal(exitCode, 1);
  assert.match(text, /^1 pods +12$/mu);
  assert.match(text, /^start +224 ms +519 ms$/mu);
  assert.match(text, /^PASS start: 0\.43 × the other kubelet \(at most 0\.50 × the other kubelet\)$/mu);
  assert.match(text, /^FAIL delete: 0\.33 × the other kubelet \(at most 0\.25 × the other kubelet\)$/mu);
});

test("as JSON a report has the same contents", (t) => {
  const { text, exitCode } = printed(t, true);
  assert.equal(exitCode, 1);
  const { goals, more } = JSON.parse(text) as {
    readonly goals: readonly { readonly met: boolean }[];
    readonly more: unknown;
  };
  assert.deepEqual(
    goals.map(({ met }) => met),
    [true, false],
  );
  assert.deepEqual(more, report.more);
});
