import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { runtimeStatus } from "../../test/support/runtime-status.ts";
import type { Pod } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import type { Cause } from "../journal/entry.ts";
import { completed, type Ending } from "../pods/ending.ts";
import { preempted, preempting } from "../pods/preemption.ts";
import { firstView } from "../pods/waiting-pod.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { verdict } from "../server/verdict.ts";
import { podView } from "./pod-view.ts";

const pod = podWith({ containers: [{ name: "c" }] });
const cause: Cause = { code: "PodCompleted", message: "all containers have exited and none is restarted" };

const context = {
  ...{ nodeName: "node1", podLogsRoot: "/var/log/pods", wallOffsetMs: 0, ignored: new Map() },
  ...{ served: () => [], holdout: () => undefined },
};

/** Phase, reason and message, and all in a line. */
function told(ending: Ending, status: PodStatus): readonly unknown[] {
  const state = { kind: "terminated", ending, killAtMs: 0, released: true, recorded: true } as const;
  const view = firstView({ ref: podRef(pod), pod, state, status: runtimeStatus(pod, []) });
  const row = podView({ view, status, forgotten: false, desired: pod, work: "own" }, context);
  assert.ok(row);
  return [row.phase, row.reason, row.message, verdict({ pod: row, entries: [], startSeq: 0, now: 0 })];
}

test("a pod that has succeeded although the node ended it shows why, which its status does not say", () => {
  const ending = preempted(pod, 1, cause);
  const { reason, message } = preempting;
  assert.deepEqual(told(ending, { phase: "Succeeded" }), [
    ...["Succeeded", reason, message],
    "Completed: Preempting: Preempted in order to admit critical pod",
  ]);
  assert.deepEqual(told(ending, { phase: "Failed", reason, message }), [
    ...["Failed", reason, message],
    "Failed: Preempting: Preempted in order to admit critical pod",
  ]);
  assert.deepEqual(told(completed(cause, 30), { phase: "Succeeded" }), ["Succeeded", "", "", "Completed"]);
});

test("a pod's row has the claims of its volumes by the volumes' names, also of ephemeral ones", () => {
  const volumes = [
    { name: "disk", persistentVolumeClaim: { claimName: "data" } },
    { name: "scratch", ephemeral: { volumeClaimTemplate: { spec: {} } } },
    { name: "plain", emptyDir: {} },
  ];
  const claimsOf = (more: Pick<Pod["spec"], "volumes">): unknown => {
    const user = podWith({ containers: [{ name: "c" }], ...more });
    const view = firstView({
      ref: podRef(user),
      pod: user,
      state: { kind: "syncing" },
      status: runtimeStatus(user, []),
    });
    return podView({ view, status: undefined, forgotten: false, desired: user, work: "own" }, context)?.claims;
  };
  assert.deepEqual(claimsOf({ volumes }), { disk: "data", scratch: `${pod.metadata.name}-scratch` });
  assert.equal(claimsOf({}), undefined);
});
