import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { JournalEntry } from "./entry.ts";
import type { EntryName } from "./vocabulary.ts";
import { timeline, why } from "./explain.ts";
import { renderTimeline, renderWhy } from "./render.ts";

const web = { namespace: "default", name: "web", uid: podUid("uid-2") };

function journal(...inputs: readonly Partial<JournalEntry>[]): JournalEntry[] {
  return inputs.map((input, index) => {
    return {
      kind: "observation",
      what: "PodPhaseChanged",
      message: "",
      pod: web,
      ...input,
      seq: index + 1,
      time: index,
    };
  });
}

test("a remark on a manifest or volume stays beside other events, until it is over or the manifest changes", () => {
  const input = (what: EntryName, message: string): Partial<JournalEntry> => ({ kind: "input", what, message });
  const entries = journal(
    input("PodAdded", "web.yaml asks for the pod"),
    input("ManifestWarning", "memory is small"),
    input("VolumeWarning", "the socket is gone"),
    input("ManifestWarning", "web.yaml.bak is ignored"),
    input("ManifestWarningOver", "web.yaml.bak is ignored"),
    { what: "ContainerStarted", message: "container app runs", container: "app" },
  );
  const warnings = (of: readonly JournalEntry[]): string[] =>
    why(of, web)?.warnings.map(({ message }) => message) ?? [];
  assert.deepEqual(warnings(entries), ["memory is small", "the socket is gone"]);
  const explanation = why(entries, web);
  assert.ok(explanation);
  assert.deepEqual(
    explanation.subjects.map(({ last }) => last.what),
    ["PodAdded", "ContainerStarted"],
  );
  assert.match(renderWhy(explanation, { now: 1000 }), /warning .*memory is small/u);
  const lived = timeline(entries, web);
  assert.ok(lived);
  const [given, over] = renderTimeline(lived, { now: 1000 }).match(/(?:no longer: )?web\.yaml\.bak is ignored/gu) ?? [];
  assert.deepEqual([given, over], ["web.yaml.bak is ignored", "no longer: web.yaml.bak is ignored"]);
  const changed = journal(input("ManifestWarning", "memory is small"), input("PodChanged", "web.yaml changed"));
  assert.deepEqual(warnings(changed), []);
});
