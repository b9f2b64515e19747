import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import { parseQuantity } from "../resources/quantity.ts";
import { failedPatch, finishedPatch, inProgressPatch, wantedExpansion } from "./claim-expansion.ts";

type Status = NonNullable<PersistentVolumeClaim["status"]>;

const other = { type: "ModifyingVolume", status: "True" };

function claimOf(status: Status): PersistentVolumeClaim {
  return {
    metadata: { name: "c", resourceVersion: "7" },
    spec: {},
    status: { capacity: { storage: "1Gi" }, ...status },
  };
}

const asked = { storage: "2Gi" };
const shared = { accessModes: ["ReadWriteMany"] };
const expandedElsewhere = { capacity: asked, allocatedResources: asked };
type Case = readonly [string, Status, ReturnType<typeof wayOf>, Partial<PersistentVolumeClaim["spec"]>?];
const cases: readonly Case[] = [
  ["waits for this node", { allocatedResourceStatuses: { storage: "NodeResizePending" } }, "recorded 2Gi"],
  ["was left halfway", { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } }, "recorded 2Gi"],
  ["cannot be expanded", { allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } }, "left alone"],
  ["is at its controller", { allocatedResourceStatuses: { storage: "ControllerResizeInProgress" } }, "left alone"],
  ["has no state of a new resizer yet", {}, "left alone"],
  ["has an old resizer", { allocatedResources: undefined }, "unrecorded 3Gi"],
  ["was expanded on another node", expandedElsewhere, "elsewhere 2Gi", shared],
  ["needs no node to be expanded", expandedElsewhere, "done 2Gi"],
];

function wayOf(claim: PersistentVolumeClaim): string {
  const wanted = wantedExpansion(claim, parseQuantity("3Gi"));
  return wanted === undefined ? "left alone" : `${wanted.way} ${wanted.size.toString()}`;
}

for (const [what, status, way, spec = {}] of cases) {
  test(`a claim that ${what} is ${way}`, () => {
    assert.equal(wayOf({ ...claimOf({ allocatedResources: asked, ...status }), spec }), way);
  });
}

test("the resize of a shared claim is complete if its driver needs nothing on nodes", () => {
  const claim = { ...claimOf(expandedElsewhere), spec: shared };
  const annotations = { "volume.kubernetes.io/node-expansion-not-required": "true" };
  assert.equal(wayOf({ ...claim, metadata: { ...claim.metadata, annotations } }), "done 2Gi");
});

test("each step is written to a claim's status, and only if the claim is unchanged", () => {
  const pending = { type: "FileSystemResizePending", status: "True" };
  const claim = claimOf({ conditions: [other, pending] });
  const metadata = { resourceVersion: "7" };
  assert.deepEqual(inProgressPatch(claim), {
    metadata,
    status: { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } },
  });
  assert.deepEqual(finishedPatch(claim, parseQuantity("2Gi")), {
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
