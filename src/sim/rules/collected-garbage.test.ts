import assert from "node:assert/strict";
import { test } from "node:test";
import { Scene } from "../../../test/support/sim-scene.ts";
import type { Cause } from "../../journal/entry.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import { collectedGarbage } from "./collected-garbage.ts";

test("a removal by the node's collection breaks the rule until all pods are known, one by a pod's worker never", async () => {
  const scene = new Scene();
  const { node, clock, world } = scene;
  const broken: string[] = [];
  const judged = { clock, world, node, pods: node.desired, unwanted: new Map() };
  const rule = collectedGarbage(judged, (_rule, detail) => void broken.push(detail));
  const removes = (what: EntryName, code: Cause["code"], message: string): void =>
    rule.entry?.({ kind: "action", what, message: code, cause: { code, message }, seq: 1, time: 0, atMs: 0 });
  const all = (): void => {
    removes("RemoveContainer", "ContainerGC", "its pod was evicted");
    removes("RemovePodSandbox", "ContainerGC", "it is not needed any more");
    removes("RemoveLogLink", "LogMissing", "it does not exist");
    removes("RemovePodLogs", "OrphanedPod", "no source and no node of this machine has the pod");
    removes("RemoveCgroup", "OrphanedPod", "neither a source nor the runtime has the pod");
    removes("RemoveContainer", "ContainerGC", "older dead instances of a container are removed");
    removes("RemoveCgroup", "PodRemoved", "its pod is removed");
  };
  assert.equal(node.mayCollect, false);
  all();
  const kinds = ["RemoveContainer", "RemovePodSandbox", "RemoveLogLink", "RemovePodLogs", "RemoveCgroup"];
  assert.deepEqual(
    broken.map((detail) => detail.split(":")[0]),
    kinds,
  );
  await scene.pass(30_000);
  assert.equal(node.mayCollect, true);
  all();
  assert.equal(broken.length, kinds.length);
});
