import assert from "node:assert/strict";
import { test } from "node:test";
import { vectorText } from "../../test/support/vectors.ts";
import { podUid } from "../base/ids.ts";
import { decodeCheckpoint, encodeCheckpoint } from "./resource-checkpoint.ts";

test("a checkpoint of the Go kubelet is read and rewritten byte for byte", () => {
  const recorded = vectorText("allocated_pods_state");
  const pods = decodeCheckpoint(recorded);
  assert.deepEqual(pods.get(podUid("0b06020472d557361cc4952b46a39606"))?.containers.get("web"), {
    limits: { cpu: "200m", memory: "64Mi" },
    requests: { cpu: "50m", memory: "16Mi" },
  });
  assert.equal(encodeCheckpoint(pods), recorded);
});

test("the checksum is the Go kubelet's, also without pod-level resources", () => {
  const data = '{"entries":{"pod1":{"ContainerResources":{"container1":{"requests":{"cpu":"1Ki","memory":"1Ki"}}}}}}';
  const pods = decodeCheckpoint(JSON.stringify({ data, checksum: 1_178_570_812 }));
  assert.deepEqual(pods.get(podUid("pod1")), {
    containers: new Map([["container1", { requests: { cpu: "1Ki", memory: "1Ki" } }]]),
    pod: undefined,
  });
});

test("changed, truncated and foreign files are rejected as checkpoints", () => {
  const text = encodeCheckpoint(new Map([[podUid("u"), { containers: new Map(), pod: { limits: { cpu: 1 } } }]]));
  assert.equal(decodeCheckpoint(text).get(podUid("u"))?.pod?.limits?.["cpu"], "1");
  for (const bad of ["", "{}", "null", text.slice(0, -5), text.replace("cpu", "gpu"), '{"data":"{","checksum":0}']) {
    assert.throws(() => decodeCheckpoint(bad), bad);
  }
});
