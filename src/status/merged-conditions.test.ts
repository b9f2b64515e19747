import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, apiPod, cause, ready, running, withWorld } from "../../test/support/status-world.ts";
import type { PodStatus } from "../api/status.ts";
import { podUid } from "../base/ids.ts";
import { mergedConditions } from "./merged-conditions.ts";

test("conditions of others are the server's, those of the node its own", () => {
  const gate = { ...ready("True"), type: "example.org/gate" };
  const wanted: PodStatus = { ...running, conditions: [{ ...gate, type: "example.org/gone" }, ready("True")] };
  const found: PodStatus = { ...running, conditions: [ready("False"), gate] };
  assert.deepEqual(mergedConditions(found, wanted), [gate, ready("True")]);
  assert.deepEqual(mergedConditions(undefined, wanted), [ready("True")]);
});

test("the node's disruption is reported with the pod's end, replacing others' in the meantime", async () => {
  await withWorld(async ({ kube, sync, statuses }) => {
    const disruption = (status: "True" | "False", reason: string) =>
      ({ ...ready(status), type: "DisruptionTarget", reason }) as const;
    const [evicted, ours] = [disruption("False", "EvictionByEvictionAPI"), disruption("True", "TerminationByKubelet")];
    const pod = apiPod("a", {}, running);
    sync.podSeen(pod);
    const failed: PodStatus = { phase: "Failed", conditions: [ours, ready("False")] };
    statuses.set(pod, failed, cause);
    const lost = await kube.next();
    // A status of the running pod: its event arrives before the end has been sent.
    sync.podSeen(apiPod("a", { resourceVersion: "11" }, { ...running, conditions: [evicted, ready("True")] }));
    assert.deepEqual(statuses.get(podUid("uid-a"))?.conditions, [ours, ready("False")]);
    await lost.json({ kind: "Status", reason: "Conflict", message: "it was modified", code: 409 }, 409);
    await kube.clock.advance(1000);
    const patch = await kube.next();
    const told = (patch.body as { status: PodStatus }).status.conditions?.find(({ type }) => type === ours.type);
    assert.deepEqual([told?.status, told?.reason], ["True", "TerminationByKubelet"]);
    await patch.json(answer(pod, failed, "12"));
    sync.podSeen(apiPod("a", { resourceVersion: "13" }, { ...failed, conditions: [evicted, ready("False")] }));
    assert.deepEqual(statuses.get(podUid("uid-a"))?.conditions, [evicted, ready("False")]);
    await kube.clock.advance(20_000);
    assert.ok(await kube.isQuiet(), "what others say of it later is theirs");
  });
});
