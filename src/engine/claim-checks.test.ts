import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { ClaimView } from "../server/local-api.ts";
import { claimChecks } from "./claim-checks.ts";

function view(name: string, changes: Partial<ClaimView>): ClaimView {
  const bound = { namespace: "default", phase: "Bound", message: "", requested: "1Gi", isOwn: true } as const;
  return { ...bound, name, accessModes: [], usedBy: [], objects: [], ...changes };
}

test("doctor names the claims that pods wait for, and no others", () => {
  const usedBy = [{ namespace: "default", name: "web", uid: podUid("uid-web") }];
  const views = [
    view("bound", { usedBy }),
    view("idle", { phase: "Pending", message: "nobody cares" }),
    view("awaited", { phase: "Pending", message: 'volume "disk" not found', usedBy }),
  ];
  const checks = claimChecks({ views: () => views, missing: () => ["default/lost"] });
  assert.deepEqual(
    checks.map(({ detail, remedy }) => [detail, remedy]),
    [
      ["claim default/lost does not exist", "give the PersistentVolumeClaim document to 'podwright run'"],
      ['claim default/awaited is not bound: volume "disk" not found', "give a PersistentVolume that fits"],
    ],
  );
  assert.ok(checks.every(({ ok, warning }) => ok && warning === true));
  assert.deepEqual(claimChecks(undefined), []);
});
