import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/eviction.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { ChangeReports } from "./change-reports.ts";

const pods = Array.from({ length: 13 }, (_, index) => podWith(`p${index}`));
const changed = {
  signal: "memory.available",
  change: "changed",
  cause: { code: "EvictionThresholdMet", message: "" },
} as const;

function reports(waits: boolean, gone = new Set<string>()) {
  const [journal, logged] = [new MemoryRecorder(), [] as unknown[]];
  const log = { ...silentLog, warn: (_message: string, fields?: object) => void logged.push(fields) };
  const evictor = { isCandidate: ({ metadata }: { metadata: { name: string } }) => !gone.has(metadata.name) };
  return { journal, logged, reports: new ChangeReports({ journal, log, evictor, accepted: { waits } }) };
}

test("all pods that would have to go are named once, each in an Event of its own, as many as a message holds", () => {
  const { journal, logged, reports: told } = reports(true);
  assert.equal(told.tell(pods.slice(0, 2), changed), true);
  told.tell(pods.slice(0, 2), changed);
  assert.deepEqual(journal.messages("EvictionByChange"), [
    "the settings of the last start would not evict default/p0 for memory.available; it stays until podwright evict --confirm",
    "the settings of the last start would not evict default/p1 for memory.available; it stays until podwright evict --confirm",
  ]);
  assert.deepEqual(logged, [
    { pods: ["default/p0", "default/p1"], signal: "memory.available", waitsForConfirmation: true },
  ]);
  told.tell(pods, changed);
  assert.equal(journal.messages("EvictionByChange").length, 10);
  assert.match(told.text ?? "", /evict default\/p0, .*default\/p9 and 3 more for memory.*; they stay until podwright/u);
});

test("of pods that wait only those are shown that still can be evicted", () => {
  const gone = new Set<string>();
  const { reports: told } = reports(true, gone);
  told.tell(pods.slice(0, 2), changed);
  told.tell([podWith("limited")], { ...changed, signal: "ephemeralpodfs.limit" });
  gone.add("p0").add("limited");
  assert.equal(
    told.text,
    "the settings of the last start would not evict default/p1 for memory.available; it stays until podwright evict --confirm",
  );
  told.clear();
  assert.equal(told.text, undefined);
});

test("without a confirmation the first pod goes, and others may follow", () => {
  const { journal, reports: told } = reports(false);
  assert.equal(told.tell(pods.slice(0, 2), { ...changed, change: "unknown" }), false);
  const unknown = "it is not known whether the settings of the last start would evict";
  assert.deepEqual(journal.messages("EvictionByChange"), [
    `${unknown} default/p0 for memory.available`,
    `${unknown} default/p1 for memory.available; it may have to go after others`,
  ]);
});
