import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { JournalEntry } from "../journal/entry.ts";
import type { EntryName } from "../journal/vocabulary.ts";
import { lastEntries } from "./ps.ts";

function entry(seq: number, name: string, uid: string, what: EntryName): JournalEntry {
  return {
    seq,
    time: seq,
    kind: "observation",
    what,
    message: what,
    pod: { namespace: "default", name, uid: podUid(uid) },
  };
}
const left = (...entries: JournalEntry[]): number[] => lastEntries(entries).map(({ seq }) => seq);

test("without an engine the last entry of each pod is shown, by name", () => {
  const entries = [entry(1, "b", "u1", "PodAdded"), entry(2, "a", "u2", "PodAdded"), entry(3, "b", "u1", "PodWaits")];
  assert.deepEqual(left(...entries), [2, 3]);
});

test("a removed pod is not shown, despite later observations, unless it was added again", () => {
  const life = [entry(1, "a", "u1", "PodAdded"), entry(2, "a", "u1", "PodFinished"), entry(3, "a", "u1", "PodRemoved")];
  assert.deepEqual(left(...life), []);
  assert.deepEqual(left(...life, entry(4, "a", "u1", "PodAdded")), [4]);
  assert.deepEqual(left(...life, entry(4, "a", "u2", "PodAdded"), entry(5, "a", "u1", "PodRemoved")), [4]);
});
