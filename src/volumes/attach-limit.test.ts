import assert from "node:assert/strict";
import { test } from "node:test";
import { VolumeAttachment } from "../api/volume-attachment.ts";
import { failedAttempt, limitProblem } from "./attach-limit.ts";

const created = "2026-01-01T00:00:05Z";

function failed(time: string | undefined, changed: object = {}, uid = "a"): VolumeAttachment {
  // As it comes from the API server.
  const status = { attached: false, attachError: { message: "full", errorCode: 8, ...(time && { time }) } };
  return VolumeAttachment.parse({ metadata: { name: "csi-h", uid, ...changed }, status });
}

test("at the first look, only an attempt after the pod's creation counts: within the same second it is unknown", () => {
  for (const [time, problem] of [
    ["2026-01-01T00:00:04Z", undefined],
    ["2026-01-01T00:00:05Z", undefined],
    ["2026-01-01T00:00:05.900000Z", undefined],
    ["2026-01-01T00:00:06Z", "full"],
    ["2026-01-01T01:00:06+01:00", "full"],
    ["not a time", undefined],
    [undefined, undefined],
  ] as const) {
    assert.equal(limitProblem(failed(time), created, undefined), problem, `at ${time}`);
  }
  assert.equal(limitProblem(failed("2026-01-01T00:00:06Z"), undefined, undefined), undefined);
});

test("an attempt that the first look did not find counts, whatever its time", () => {
  const early = "2026-01-01T00:00:04Z";
  const old = failedAttempt(failed(early));
  assert.equal(limitProblem(failed(early), created, old), undefined);
  assert.equal(limitProblem(failed("2026-01-01T00:00:05Z"), created, old), "full");
  assert.equal(limitProblem(failed(early, {}, "b"), created, old), "full", "of a new VolumeAttachment");
  assert.equal(limitProblem(failed(early), created, ""), "full", "there was none");
});

test("a VolumeAttachment that is being deleted, or that failed for another reason, has no limit", () => {
  const late = "2026-01-01T00:00:09Z";
  assert.equal(limitProblem(failed(late, { deletionTimestamp: late }), created, ""), undefined);
  const status = { attached: false, attachError: { time: late, message: "no such disk", errorCode: 5 } };
  assert.equal(limitProblem({ metadata: { name: "csi-h" }, status }, created, ""), undefined);
  assert.equal(limitProblem({ metadata: { name: "csi-h" } }, created, ""), undefined);
});
