import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { JournalEntry, JournalInput } from "./entry.ts";
import { why } from "./explain.ts";

const pod = { namespace: "default", name: "web", uid: podUid("uid-1") };

/** The pod's last step after its phase was reported and a token requested, as after each start of podwright. */
function lastAfterToken(result: "done" | "failed"): string | undefined {
  const cause = { code: "TokenWanted", message: "podwright needs a token" } as const;
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

test("upkeep of a pod at rest is not an answer to why, unless it failed", () => {
  assert.equal(lastAfterToken("done"), "PodPhaseChanged");
  assert.equal(lastAfterToken("failed"), "RequestToken");
});

test("a pod whose manifest was removed and added again is reported as such, until one of its containers exits by itself", () => {
  const place = "/m/web.yaml";
  const life: readonly Omit<JournalInput, "message">[] = [
    { kind: "input", what: "PodAdded", data: { place } },
    { kind: "input", what: "PodRemoved", data: { place } },
    { kind: "observation", what: "ContainerDied", container: "c" },
    { kind: "input", what: "PodAdded", data: { place } },
    { kind: "decision", what: "PodFinished" },
    { kind: "action", what: "RunPodSandbox", cause: { code: "SandboxMissing", message: "the pod has no sandbox" } },
    {
      kind: "action",
      what: "StartContainer",
      container: "c",
      cause: { code: "ContainerMissing", message: "container c has not been started yet" },
    },
  ];
  const causes = (inputs: readonly Omit<JournalInput, "message">[]): (readonly (number | string)[] | undefined)[] => {
    const entries = inputs.map((input, index): JournalEntry => {
      return { message: input.what, pod, ...input, seq: index + 1, time: 1000 * index };
    });
    const subjects = why(entries, pod)?.subjects ?? [];
    return subjects.map((subject) => subject.causes.flatMap(({ code, evidence }) => [code, evidence?.seq ?? 0]));
  };
  assert.deepEqual(causes(life), [
    ["SandboxMissing", 0, "ManifestReturned", 4],
    ["ContainerMissing", 0, "ManifestReturned", 4],
  ]);
  const died: Omit<JournalInput, "message"> = { kind: "observation", what: "ContainerDied", container: "d" };
  assert.deepEqual(causes([...life, died]).slice(0, 1), [["SandboxMissing", 0]]);
  assert.deepEqual(
    causes(life.slice(4)).slice(0, 1),
    [["SandboxMissing", 0]],
    "a pod that is there for the first time",
  );
});

test("a pod that ended before it started hides no other of its name", () => {
  const entries = (["uid-1", "uid-2"] as const).flatMap((uid, index): JournalEntry[] => {
    const own = { pod: { ...pod, uid: podUid(uid) }, time: 0 };
    const told: readonly Pick<JournalEntry, "kind" | "what">[] = [
      { kind: "input", what: "PodAdded" },
      ...(uid === "uid-1"
        ? ([{ kind: "observation", what: "PodPhaseChanged" }] as const)
        : ([
            { kind: "decision", what: "PodFinished" },
            { kind: "action", what: "RemoveLeftovers" },
          ] as const)),
    ];
    return told.map((entry, at) => ({ ...own, ...entry, message: "", seq: 10 * index + at + 1 }));
  });
  const { namespace, name } = pod;
  assert.equal(why(entries, { namespace, name })?.incarnation.pod.uid, "uid-1");
  assert.equal(why(entries, { uid: podUid("uid-2") })?.incarnation.pod.uid, "uid-2");
});

test("of two pods of a name, the one whose manifest came last is newer, even if it existed before", () => {
  const { namespace, name } = pod;
  const told = ["uid-1", "uid-2", "uid-1"].flatMap((uid, index): JournalEntry[] => {
    const own = { pod: { ...pod, uid: podUid(uid) }, time: 0, message: "" };
    return [
      { ...own, kind: "input", what: "PodAdded", seq: 10 * index + 1 },
      { ...own, kind: "observation", what: "PodPhaseChanged", seq: 10 * index + 2 },
    ];
  });
  const newest = (entries: readonly JournalEntry[]): string | undefined =>
    why(entries, { namespace, name })?.incarnation.pod.uid;
  assert.equal(newest(told), "uid-1");
  assert.equal(newest(told.slice(0, 4)), "uid-2");
});

test("a collection of images is no note on a pod, unlike what may keep podwright from working on it", () => {
  const inputs: readonly (Omit<JournalInput, "message"> & Partial<Pick<JournalEntry, "pod">>)[] = [
    { kind: "observation", what: "PodPhaseChanged", pod },
    { kind: "note", what: "RelistFailed" },
    { kind: "note", what: "ImagesCollected" },
  ];
  const entries = inputs.map((input, index): JournalEntry => {
    return { message: input.what, ...input, seq: index + 1, time: 1000 * index };
  });
  assert.deepEqual(
    why(entries, pod)?.notes.map(({ what }) => what),
    ["RelistFailed"],
  );
});
