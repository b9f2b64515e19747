import assert from "node:assert/strict";
import { test } from "node:test";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import type { JournalEntry, PodRef } from "../journal/entry.ts";
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
const select = (selector: string, refs: readonly PodRef[] = []): Partial<PodRef> =>
  selectPod({ entries, refs }, selector);
const fails = (selector: string, message: RegExp): void => {
  assert.throws(
    () => select(selector),
    (error: unknown) => {
      assert.ok(error instanceof PodwrightError);
      assert.equal(error.exitCode, ExitCode.badInput);
      assert.match(`${error.message}; ${error.remedy ?? ""}`, message);
      return true;
    },
  );
};

test("a pod is selected by its name, namespace and name, or UID", () => {
  assert.deepEqual(select("web"), { namespace: "default", name: "web" });
  assert.deepEqual(select("tools/worker"), { namespace: "tools", name: "worker" });
  assert.deepEqual(select("uid-1"), { uid: "uid-1" });
});

test("a name in several namespaces is ambiguous, and one in none is unknown", () => {
  fails("worker", /several pods have the name worker: tools\/worker, default\/worker; add the namespace/);
  fails("wbe", /pod "wbe" not found; did you mean web\?/);
  fails("other/web", /pod "other\/web" not found/);
  fails("zzzzzzzz", /existing pods: tools\/worker, web, worker/);
});

test("a pod that the engine knows is found although the journal has no entry of it any more", () => {
  const quiet: PodRef = { namespace: "default", name: "quiet", uid: podUid("uid-5") };
  for (const selector of ["quiet", "default/quiet", "uid-5"]) {
    assert.deepEqual(select(selector, [quiet]), { uid: "uid-5" });
  }
  const web: PodRef = { namespace: "default", name: "web", uid: podUid("uid-6") };
  assert.deepEqual(select("web", [web]), { uid: "uid-6" }, "the recorded ones of its name were before it");
  const known: PodRef = { ...web, uid: podUid("uid-2") };
  assert.deepEqual(select("web", [known]), { namespace: "default", name: "web" });
  const worker: PodRef = { ...quiet, namespace: "tools" };
  assert.throws(
    () => select("quiet", [quiet, { ...worker, uid: podUid("uid-7") }]),
    /several pods have the name quiet/,
  );
});
