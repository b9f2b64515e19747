import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import type { ClaimView } from "../server/local-api.ts";
import { claimChecks } from "./claim-checks.ts";

function view(name: string, changes: Partial<ClaimView>): ClaimView {
  const bound = { namespace: "default", phase: "Bound", message: "", requested: "1Gi", isOwn: true } as const;
  return { ...bound, name, accessModes: [], usedBy: [], objects: [], ...changes };
}

test("doctor names the claims that pods wait for, and no others", () => {
  const usedBy = [{ namespace: "default", name: "web", uid: podUid("uid-web") }];
  const ending = [{ namespace: "default", name: "old", uid: podUid("uid-old") }];
  const views = [
    view("bound", { usedBy }),
    view("idle", { phase: "Pending", message: "nobody cares" }),
    view("given up", { phase: "Pending", message: "its pod ends", usedBy: ending }),
    view("awaited", { phase: "Pending", message: 'volume "disk" not found', usedBy }),
  ];
  const web: Pod = {
    metadata: { namespace: "default", name: "web", uid: podUid("uid-web") },
    spec: { containers: [] },
  };
  const missing = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => `default/lost-of-${metadata.name}`);
  const checks = claimChecks({ views: () => views, missing }, [web]);
  assert.deepEqual(
    checks.map(({ detail, remedy }) => [detail, remedy]),
    [
      ["claim default/lost-of-web does not exist", "add the PersistentVolumeClaim to the manifests of 'podwright run'"],
      ['claim default/awaited is not bound: volume "disk" not found', "add a matching PersistentVolume"],
    ],
  );
  assert.ok(checks.every(({ ok, warning }) => ok && warning === true));
  assert.deepEqual(claimChecks(undefined, [web]), []);
});
