import assert from "node:assert/strict";
import { test } from "node:test";
import { hasBeginning } from "./beginning.ts";
import type { JournalEntry } from "./entry.ts";
import type { EntryName } from "./vocabulary.ts";

const cause = { code: "Resync", message: "a test" } as const;

function entry(what: EntryName, more: Partial<JournalEntry> = {}): JournalEntry {
  return { kind: "observation", message: "", what, seq: 1, time: 1, ...more };
}
const added = entry("PodAdded", { kind: "input" });
const started = entry("StartContainer", { kind: "action", container: "app", cause });
const is = (state: string): JournalEntry => entry("ContainerStateChanged", { container: "app", data: { state } });

test("a pod's entries have its beginning if they begin when it was added, and have the starts of its containers", () => {
  assert.equal(hasBeginning([added, is("waiting"), started, is("running"), entry("ContainerDied")]), true);
  const ignored = entry("FailedValidation", { kind: "decision", cause });
  assert.equal(hasBeginning([ignored, added, started]), true);
  assert.equal(hasBeginning([ignored]), true);
  assert.equal(hasBeginning([entry("ClaimBound", { kind: "decision", cause }), added, started]), true);
});

test("entries without the pod's beginning are recognised", () => {
  assert.equal(hasBeginning([is("terminated"), started]), false);
  assert.equal(hasBeginning([is("running"), added, started]), false);
});

test("where podwright has started again, its pods are added again: a container that ran before tells", () => {
  assert.equal(hasBeginning([added, is("running"), entry("ContainerDied", { container: "app" }), started]), false);
  assert.equal(hasBeginning([added, entry("ContainerDied", { container: "app" }), started]), false);
});
