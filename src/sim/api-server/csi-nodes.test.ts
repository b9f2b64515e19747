import assert from "node:assert/strict";
import { test } from "node:test";
import { checkCsiNode } from "./csi-nodes.ts";

const listing = (...drivers: object[]): { readonly spec: object } => ({ spec: { drivers } });

test("a driver's entry is not changed, except its count; it is removed, and added as another one", () => {
  const before = listing({ name: "d", nodeID: "i-1", topologyKeys: ["zone"] });
  for (const changed of [{ nodeID: "i-2", topologyKeys: ["zone"] }, { nodeID: "i-1" }]) {
    assert.throws(() => checkCsiNode(before, listing({ name: "d", ...changed })), /field is immutable/u);
  }
  checkCsiNode(before, listing({ name: "d", nodeID: "i-1", topologyKeys: ["zone"], allocatable: { count: 1 } }));
  checkCsiNode(before, listing());
  checkCsiNode(listing(), listing({ name: "d", nodeID: "i-2" }));
  assert.throws(() => checkCsiNode(listing(), listing({ name: "d", nodeID: "" })), /nodeID: Required value/u);
});
