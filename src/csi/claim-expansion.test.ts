import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import { parseQuantity } from "../resources/quantity.ts";
import { expansionWay, failedPatch, finishedPatch, inProgressPatch } from "./claim-expansion.ts";

type Status = NonNullable<PersistentVolumeClaim["status"]>;

const wanted = parseQuantity("2Gi");
const other = { type: "ModifyingVolume", status: "True" };

function claimOf(status: Status): PersistentVolumeClaim {
  return {
    metadata: { name: "c", resourceVersion: "7" },
    spec: {},
    status: { capacity: { storage: "1Gi" }, ...status },
  };
}

const ways: readonly (readonly [string, Status, ReturnType<typeof expansionWay>])[] = [
  ["waits for this node", { allocatedResourceStatuses: { storage: "NodeResizePending" } }, "recorded"],
  ["was left halfway", { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } }, "recorded"],
  ["cannot be expanded", { allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } }, undefined],
  ["is at its controller", { allocatedResourceStatuses: { storage: "ControllerResizeInProgress" } }, undefined],
  ["has no state of a new resizer yet", { allocatedResources: { storage: "2Gi" } }, undefined],
  ["has an old resizer", {}, "unrecorded"],
  ["was expanded on another node", { capacity: { storage: "2Gi" } }, "elsewhere"],
];
for (const [what, status, way] of ways) {
  test(`a claim that ${what} is ${way ?? "left alone"}`, () =>
    assert.equal(expansionWay(claimOf(status), wanted), way));
}

test("a claim's status says each step, and only that of the claim as it was read", () => {
  const pending = { type: "FileSystemResizePending", status: "True" };
  const claim = claimOf({ conditions: [other, pending] });
  const metadata = { resourceVersion: "7" };
  assert.deepEqual(inProgressPatch(claim), {
    metadata,
    status: { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } },
  });
  assert.deepEqual(finishedPatch(claim, "2Gi"), {
    metadata,
    status: { capacity: { storage: "2Gi" }, allocatedResourceStatuses: { storage: null }, conditions: [other] },
  });
  const failed = {
    ...{ type: "NodeResizeError", status: "True", lastTransitionTime: "now" },
    message: "failed to expand pvc with no room",
  };
  assert.deepEqual(failedPatch(claim, "no room", false, "now"), {
    metadata,
    status: { conditions: [other, pending, failed] },
  });
  assert.deepEqual(failedPatch(claimOf({ conditions: [failed] }), "no room", true, "later"), {
    metadata,
    status: { conditions: [failed], allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } },
  });
});
