import assert from "node:assert/strict";
import { test } from "node:test";
import type { JournalEntry, JournalInput } from "./entry.ts";
import { why } from "./explain.ts";

const pod = { namespace: "default", name: "web", uid: "uid-1" };

/** What the pod's last step is after its phase was told and a token was asked for, as each start of podwright does. */
function lastAfterToken(result: "done" | "failed"): string | undefined {
  const cause = { code: "TokenWanted", message: "podwright asks for a token" };
  const inputs: readonly Omit<JournalInput, "message">[] = [
    { kind: "observation", what: "PodPhaseChanged" },
    { kind: "action", what: "RequestToken", cause },
    { kind: "outcome", what: "RequestToken", of: 2, result },
  ];
  const entries = inputs.map((input, index): JournalEntry => {
    return { message: input.what, pod, ...input, seq: index + 1, time: 1000 * index };
  });
  return why(entries, pod)?.subjects[0]?.last.what;
}

test("what is done again for a pod at rest is no answer to why, unless it failed", () => {
  assert.equal(lastAfterToken("done"), "PodPhaseChanged");
  assert.equal(lastAfterToken("failed"), "RequestToken");
});
