import assert from "node:assert/strict";
import { test } from "node:test";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { selectPod } from "./journal-source.ts";

function entry(seq: number, namespace: string, name: string, uid: string): JournalEntry {
  return {
    seq,
    time: seq,
    kind: "input",
    what: "PodAdded",
    message: "added",
    pod: { namespace, name, uid: podUid(uid) },
  };
}
const entries = [
  entry(1, "default", "web", "uid-1"),
  entry(2, "default", "web", "uid-2"),
  entry(3, "tools", "worker", "uid-3"),
  entry(4, "default", "worker", "uid-4"),
];
const fails = (selector: string, message: RegExp): void => {
  assert.throws(
    () => selectPod(entries, selector),
    (error: unknown) => {
      assert.ok(error instanceof PodwrightError);
      assert.equal(error.exitCode, ExitCode.badInput);
      assert.match(`${error.message}; ${error.remedy ?? ""}`, message);
      return true;
    },
  );
};

test("a pod is selected by its name, namespace and name, or UID", () => {
  assert.deepEqual(selectPod(entries, "web"), { namespace: "default", name: "web" });
  assert.deepEqual(selectPod(entries, "tools/worker"), { namespace: "tools", name: "worker" });
  assert.deepEqual(selectPod(entries, "uid-1"), { uid: "uid-1" });
});

test("a name in several namespaces is ambiguous, and one in none is unknown", () => {
  fails("worker", /several pods have the name worker: tools\/worker, default\/worker; add the namespace/);
  fails("wbe", /pod "wbe" not found; did you mean web\?/);
  fails("other/web", /pod "other\/web" not found/);
  fails("zzzzzzzz", /existing pods: tools\/worker, web, worker/);
});
