import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { isCriticalPod, isMirrorPod, isNodeCriticalPod, isStaticPod } from "./pod-kind.ts";

const from = (source: string, spec = {}) => podWith(spec, { annotations: { "kubernetes.io/config.source": source } });

test("static pods come from the node's files and URLs, not from its users or the API", () => {
  assert.deepEqual(
    ["file", "http", "api", "run"].map((source) => isStaticPod(from(source))),
    [true, true, false, false],
  );
  assert.equal(isStaticPod(podWith({})), false);
});

test("static, mirror and high-priority pods are critical", () => {
  assert.equal(isCriticalPod(from("file")), true);
  const mirror = podWith({}, { annotations: { "kubernetes.io/config.mirror": "x" } });
  assert.equal(isMirrorPod(mirror) && isCriticalPod(mirror), true);
  assert.equal(isCriticalPod(podWith({ priority: 2_000_000_000 })), true);
  assert.equal(isCriticalPod(podWith({ priority: 1_999_999_999, priorityClassName: "system-node-critical" })), false);
  assert.equal(isNodeCriticalPod(from("file", { priorityClassName: "system-node-critical" })), true);
  assert.equal(isNodeCriticalPod(from("file")), false);
});
