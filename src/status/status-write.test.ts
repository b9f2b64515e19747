import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PodStatus } from "../api/status.ts";
import { podUid } from "../base/ids.ts";
import { statusEchoes, statusPatch } from "./status-write.ts";

const running: PodStatus = { phase: "Running" };

describe("the patch of a status", () => {
  test("targets the requested pod, whatever was compared before", () => {
    assert.deepEqual(statusPatch(podUid("mirror-1"), undefined, running), {
      metadata: { uid: "mirror-1" },
      status: { phase: "Running" },
    });
    assert.deepEqual(statusPatch(podUid("mirror-2"), undefined, running), {
      metadata: { uid: "mirror-2" },
      status: { phase: "Running" },
    });
    assert.equal(statusPatch(podUid("mirror-2"), { phase: "Running" }, running), undefined);
    assert.ok(statusPatch(podUid("mirror-2"), { phase: "Pending" }, running));
    assert.ok(statusPatch(podUid("mirror-2"), undefined, running));
  });
});

describe("the server's response to a status", () => {
  const metadata = { name: "a", namespace: "ns", uid: "u", resourceVersion: "7" };

  test("is its current status; the rest of the pod need not be decodable", () => {
    const answer = statusEchoes.decode({ metadata, spec: { containers: "none" }, status: running });
    assert.deepEqual(answer, { metadata: { name: "a", uid: "u", resourceVersion: "7" }, status: running });
    assert.equal(statusEchoes.decode({ metadata, status: { phase: 7 } }).status, undefined);
  });

  test("is none without a name and a UID", () => {
    for (const wrong of [{}, { metadata: {} }, { metadata: { ...metadata, uid: 7 } }, "text", null]) {
      assert.throws(() => statusEchoes.decode(wrong), /^ApiDecodeError: Pod: has no name or UID/u);
    }
  });
});
