import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/observed.ts";
import { podIPs } from "./pod-ips.ts";

test("a hostNetwork pod has the node's addresses, any other its sandbox's", () => {
  const node = { hostIPs: ["192.0.2.1"] };
  assert.deepEqual(podIPs(node, testPod({ hostNetwork: true }), []), ["192.0.2.1"]);
  assert.deepEqual(podIPs(node, testPod(), ["10.0.0.2"]), ["10.0.0.2"]);
  assert.deepEqual(podIPs(node, undefined, ["10.0.0.2"]), ["10.0.0.2"]);
});
