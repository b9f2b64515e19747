import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { mirrorPod, staticPod } from "../../test/support/mirror-pods.ts";
import type { Pod } from "../api/pod.ts";
import type { ApiPod } from "../sources/api-pod.ts";
import { podUid } from "../base/ids.ts";
import { unwanted } from "./ending.ts";
import { leavingNames, mirrorActions, mirrorOf, type OwnStaticPod } from "./mirror-actions.ts";
import { ownStaticPods } from "./own-static-pods.ts";
import { terminate } from "./worker-state.ts";

describe("mirrorActions", () => {
  const actions = (statics: readonly Pod[], mirrors: readonly ApiPod[]): string[] =>
    mirrorActions(statics, mirrors, true).map((action) => {
      const pod = action.kind === "create" ? action.pod : action.mirror;
      return `${action.kind} ${pod.metadata.name}: ${action.cause.code}`;
    });

  test("a pod without a mirror pod gets one", () => {
    assert.deepEqual(actions([staticPod("a", "1")], []), ["create a: MirrorPodMissing"]);
    assert.deepEqual(actions([staticPod("a", "1")], [mirrorPod("a", "1")]), []);
  });

  test("a mirror pod of an older manifest, a terminating one and an orphaned one are removed", () => {
    const deletionTimestamp = "2026-11-20T14:02:00Z";
    assert.deepEqual(actions([staticPod("a", "2")], [mirrorPod("a", "1")]), ["delete a: MirrorPodOutdated"]);
    assert.deepEqual(actions([staticPod("a", "1")], [mirrorPod("a", "1", { deletionTimestamp })]), [
      "delete a: MirrorPodDeleted",
    ]);
    assert.deepEqual(actions([], [mirrorPod("a", "1")]), ["delete a: MirrorPodOrphaned"]);
  });

  test("before all pods are known only a terminating mirror pod is removed", () => {
    const deletionTimestamp = "2026-11-20T14:02:00Z";
    const early = (...mirrors: ApiPod[]) =>
      mirrorActions([staticPod("a", "2")], mirrors, false).map(({ cause }) => cause.code);
    assert.deepEqual(early(mirrorPod("a", "1"), mirrorPod("b", "1")), []);
    assert.deepEqual(early(mirrorPod("a", "2", { deletionTimestamp })), ["MirrorPodDeleted"]);
  });

  test("a static pod leaves when it stops, and when its manifest is removed", () => {
    const names = (isStopping: boolean, ...statics: Pod[]) => [
      ...leavingNames([{ pod: staticPod("a", "1"), isStopping }], statics),
    ];
    assert.deepEqual(names(false, staticPod("a", "1")), []);
    assert.deepEqual(names(true, staticPod("a", "1")), ["ns/a"]);
    assert.deepEqual(names(false, staticPod("a", "2")), ["ns/a"]);
    assert.deepEqual(names(false), ["ns/a"]);
  });

  test("an orphan whose spec cannot be read may be a static pod that leaves", () => {
    const state = terminate({ kind: "syncing" }, unwanted({ code: "OrphanedPod", message: "" }, 1), 0);
    const ref = { namespace: "ns", name: "a", uid: podUid("1") };
    const own = (pod: Pod | undefined, isStatic: boolean): OwnStaticPod[] =>
      ownStaticPods([{ ref, pod, isStatic, state }], []);
    const names = (pod: Pod | undefined, isStatic: boolean) => [
      ...leavingNames(own(pod, isStatic), [staticPod("a", "2")]),
    ];
    assert.deepEqual(names(undefined, false), ["ns/a"]);
    assert.deepEqual(names(staticPod("a", "1"), true), ["ns/a"]);
    assert.deepEqual(names(staticPod("a", "1"), false), [], "another source's");
  });

  test("mirror pods of a pod that is being stopped stay unchanged", () => {
    const during = (statics: readonly Pod[], mirrors: readonly ApiPod[], name: string) =>
      mirrorActions(statics, mirrors, true, new Set(), new Set([`ns/${name}`])).map(({ kind }) => kind);
    for (const [name, kept] of [
      ["a", true],
      ["b", false],
    ] as const) {
      assert.deepEqual(during([], [mirrorPod("a", "1")], name), kept ? [] : ["delete"], "orphaned");
      assert.deepEqual(during([staticPod("a", "2")], [mirrorPod("a", "1")], name), kept ? [] : ["delete"], "outdated");
      assert.deepEqual(during([staticPod("a", "2")], [], name), kept ? [] : ["create"], "missing");
    }
  });
});

test("a mirror pod is owned by the node, has the pod's hash and no UID", () => {
  assert.deepEqual(mirrorOf(staticPod("a", "1"), { name: "node1", uid: "n" }), {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "a",
      namespace: "ns",
      annotations: {
        "kubernetes.io/config.hash": "1",
        "kubernetes.io/config.source": "file",
        "kubernetes.io/config.mirror": "1",
      },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "node1", uid: "n", controller: true }],
    },
    spec: { containers: [{ name: "c" }] },
  });
});
