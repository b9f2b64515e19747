import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { resizeMessage } from "./resize-summary.ts";

// Expected texts from upstream's own test.
test("a resize message is upstream's, with each container's resources", () => {
  const both = { cpu: "100m", memory: "100" };
  const pod = podWith({ containers: [{ name: "c0", resources: { requests: both, limits: both } }] });
  const listed = '{"limits":{"cpu":"100m","memory":"100"},"requests":{"cpu":"100m","memory":"100"}}';
  const containers = `"containers":[{"name":"c0","resources":${listed}}]`;
  assert.equal(resizeMessage("ResizeStarted", pod, 1), `Pod resize started: {${containers},"generation":1}`);
  assert.equal(resizeMessage("ResizeCompleted", pod, 1), `Pod resize completed: {${containers},"generation":1}`);
  assert.equal(
    resizeMessage("ResizeError", pod, 1, "some error occurred"),
    `Pod resize error: {${containers},"generation":1,"error":"some error occurred"}`,
  );
  assert.equal(
    resizeMessage("ResizeDeferred", pod, 1, "Node didn't have enough resource: memory"),
    `Pod resize Deferred: {${containers},"generation":1,"error":"Node didn't have enough resource: memory"}`,
  );
});

test("init containers are listed separately, and a container without resources has none", () => {
  const pod = podWith({
    initContainers: [{ name: "c0", resources: { requests: { cpu: "0.1" }, limits: { cpu: "200m" } } }],
    containers: [{ name: "c1" }, { name: "c2", resources: { requests: { memory: "1024Mi", cpu: "200m" } } }],
  });
  assert.equal(
    resizeMessage("ResizeInfeasible", pod, undefined),
    'Pod resize Infeasible: {"initContainers":[{"name":"c0","resources":{"limits":{"cpu":"200m"},"requests":{"cpu":"100m"}}}],' +
      '"containers":[{"name":"c1","resources":{}},{"name":"c2","resources":{"requests":{"cpu":"200m","memory":"1Gi"}}}],"generation":0}',
  );
});
