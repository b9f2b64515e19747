import assert from "node:assert/strict";
import { test } from "node:test";
import { PhaseFailures, type SetUpPhase } from "./set-up-phases.ts";

function counted(...phases: readonly SetUpPhase[]): number[] {
  const failures = new PhaseFailures();
  return phases.map((phase) => failures.add(phase));
}

test("failures of a phase are counted from its first", () => {
  assert.deepEqual(counted("claim", "claim", "attachment", "attachment", "set-up", "set-up"), [0, 1, 0, 1, 0, 1]);
});

test("a set-up that fails again after a wait for the attachment is tried again soon", () => {
  assert.deepEqual(counted("set-up", "set-up", "attachment", "set-up"), [0, 1, 0, 0]);
});

test("a claim that cannot be read for a while does not make its volume's driver be called more often", () => {
  assert.deepEqual(counted("set-up", "set-up", "claim", "claim", "set-up", "claim"), [0, 1, 0, 1, 2, 0]);
});
