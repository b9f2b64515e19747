import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { JournalEntry, JournalInput } from "./entry.ts";
import { why } from "./explain.ts";

const pod = { namespace: "default", name: "web", uid: podUid("uid-1") };

/** What the pod and its container wait for after these entries, a second apart. */
function next(...inputs: readonly Omit<JournalInput, "message" | "pod">[]): (string | undefined)[] {
  const entries = inputs.map((input, index): JournalEntry => {
    return { message: input.what, pod, ...input, seq: index + 1, time: 1000 * index };
  });
  return why(entries, pod)?.subjects.map((subject) => subject.next?.what) ?? [];
}

const backOff = { kind: "decision", what: "BackOff", container: "app", until: 60_000 } as const;
const terminating = { kind: "decision", what: "PodTerminating", until: 30_000 } as const;
const terminated = { kind: "decision", what: "PodTerminated" } as const;

test("a container in back-off waits for nothing once its pod is being stopped", () => {
  assert.deepEqual(next({ kind: "input", what: "PodAdded" }, backOff), [undefined, "BackOff"]);
  assert.deepEqual(next({ kind: "input", what: "PodAdded" }, backOff, terminating), ["PodTerminating", undefined]);
});

test("a stopped pod is no longer being stopped, even if stopping took no action", () => {
  assert.deepEqual(next(terminating, terminated), [undefined]);
  assert.deepEqual(next(backOff, terminating, terminated), [undefined, undefined]);
});
