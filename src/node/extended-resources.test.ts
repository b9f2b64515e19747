import assert from "node:assert/strict";
import { test } from "node:test";
import { extendedResources } from "./extended-resources.ts";

test("pods count against what others have added to a Node, in Kubernetes' own domain, too", () => {
  const added = { "example.org/gpu": "2", "kubernetes.io/batch-cpu": "1500" };
  const allocatable = { cpu: "2", memory: "8Gi", pods: "110", "hugepages-2Mi": "1Gi", ...added };
  assert.deepEqual(extendedResources({ metadata: { name: "node1" }, status: { allocatable } }), added);
});
