import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { previewLines } from "./evict.ts";

test("the eviction order has a line per pod, with the reason for its place", () => {
  const pod = (name: string, place: string, evictable = true) => {
    return { namespace: "default", name, uid: podUid(name), place, evictable };
  };
  const preview = {
    signal: "memory.available",
    standing: "memory.available is 1Gi of 8Gi; pods are evicted below 100Mi",
    pods: [pod("web", "uses 2Gi of memory"), pod("database", "uses 1Gi of memory, critical: never evicted", false)],
  };
  assert.deepEqual(previewLines(preview), [
    "memory.available is 1Gi of 8Gi; pods are evicted below 100Mi",
    "1  default/web       uses 2Gi of memory",
    "2  default/database  uses 1Gi of memory, critical: never evicted",
  ]);
  assert.deepEqual(previewLines({ ...preview, pods: [] }).at(-1), "no running pod can be evicted");
});
