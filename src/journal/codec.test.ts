import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { decodeLine, encodeEntry } from "./codec.ts";
import type { JournalEntry } from "./entry.ts";
import { why } from "./explain.ts";

const pod = { namespace: "default", name: "web", uid: podUid("u1") };

test("unknown names and codes are read as UnknownEntry and UnknownCause, with everything else", () => {
  const because = { code: "FactOfTomorrow", message: "something new happened" };
  const cause = { code: "ContainerExited", message: "container app exited with code 1", entry: 3, because };
  const line = JSON.stringify({ seq: 7, time: 1, kind: "decision", what: "NameOfTomorrow", message: "m", pod, cause });
  const entry = decodeLine(line);
  assert.deepEqual(entry, {
    ...{ seq: 7, time: 1, kind: "decision", what: "UnknownEntry", message: "m", pod },
    cause: { ...cause, because: { ...because, code: "UnknownCause" } },
  });
  assert.deepEqual(
    why([entry], pod)?.subjects.map(({ last, causes }) => [last.message, causes.map(({ message }) => message)]),
    [["m", [cause.message, because.message]]],
  );
});

test("encoding and decoding preserve an entry", () => {
  const entry: JournalEntry = {
    ...{ seq: 1, time: 2, kind: "decision", what: "OutOfexample.com/gpu", message: "refused", pod },
    cause: { code: "ManifestAdded", message: "a manifest was added" },
    data: { resource: "example.com/gpu" },
  };
  assert.deepEqual(decodeLine(encodeEntry(entry).line), entry);
});
