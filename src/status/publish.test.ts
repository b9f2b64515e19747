import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { runtimeContainer, runtimeStatus } from "../../test/support/runtime-status.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import type { PodStatus } from "../api/status.ts";
import type { Ending } from "../pods/ending.ts";
import { refused, rejection } from "../pods/rejection.ts";
import { firstView } from "../pods/waiting-pod.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { publishStatus } from "./publish.ts";
import { StatusManager } from "./status-manager.ts";

const cause = { code: "Resync", message: "the test says so" } as const;

test("a changed address family of the node is reported once for each pod", () => {
  const journal = new MemoryRecorder();
  const statuses = new StatusManager(journal);
  const pod = podWith({ containers: [{ name: "c" }], hostNetwork: true });
  const status = runtimeStatus(pod, [runtimeContainer("c")]);
  const view = firstView({ ref: podRef(pod), pod, state: { kind: "syncing" }, status });
  const told = (...hostIPs: string[]): readonly unknown[] => {
    publishStatus(statuses, view, cause, {
      ...{ clock: new ManualClock(), journal, runtimeName: "sim", hostIPs },
      ...{ probes: () => new Map(), features: () => ({ recursiveReadOnlyMounts: false }) },
    });
    const { hostIP, podIPs } = statuses.get(pod.metadata.uid) ?? {};
    return [hostIP, (podIPs ?? []).map(({ ip }) => ip), journal.messages("HostIPsIPFamilyMismatch")];
  };
  assert.deepEqual(told("192.0.2.1"), ["192.0.2.1", ["192.0.2.1"], []]);
  assert.deepEqual(told("192.0.2.2"), ["192.0.2.2", ["192.0.2.1"], []], "a pod keeps the address that it had");
  const message =
    "Kubelet detected an IPv4 node IP (192.0.2.2), but the cloud provider selected an IPv6 node IP (2001:db8::1); " +
    "pass an explicit `--node-ip` to kubelet to fix this.";
  const moved = ["2001:db8::1", ["2001:db8::1", "192.0.2.1"], [message]];
  assert.deepEqual(told("2001:db8::1", "192.0.2.2"), moved);
  assert.deepEqual(told("2001:db8::1", "192.0.2.2"), moved);
});

test("whether a mount is recursively read-only depends on the features of the pod's handler at that time", () => {
  const statuses = new StatusManager(new MemoryRecorder());
  const mount = { name: "v", mountPath: "/v", readOnly: true, recursiveReadOnly: "IfPossible" };
  const pod = podWith({ containers: [{ name: "c", volumeMounts: [mount] }] });
  const view = firstView({
    ...{ ref: podRef(pod), pod, state: { kind: "syncing" } },
    status: runtimeStatus(pod, [runtimeContainer("c")]),
  });
  for (const recursiveReadOnlyMounts of [false, true]) {
    publishStatus(statuses, view, cause, {
      ...{ clock: new ManualClock(), journal: new MemoryRecorder(), runtimeName: "sim", hostIPs: [] },
      ...{
        probes: () => new Map(),
        features: (asked) => ({ recursiveReadOnlyMounts: recursiveReadOnlyMounts && asked === pod }),
      },
    });
    const [status] = statuses.get(pod.metadata.uid)?.containerStatuses ?? [];
    const [shown] = status?.volumeMounts ?? [];
    assert.equal(shown?.recursiveReadOnly, recursiveReadOnlyMounts ? "Enabled" : "Disabled");
  }
});

test("evicting a pod and rejecting it for the same reason are distinguished", () => {
  const [reason, message] = ["Evicted", "The node was low on resource: memory."] as const;
  const pod = podWith({ containers: [{ name: "c" }] });
  const published = (ending: Ending): PodStatus | undefined => {
    const statuses = new StatusManager(new MemoryRecorder());
    const view = firstView({
      ref: podRef(pod),
      pod,
      state: { kind: "terminated", ending, killAtMs: 0, released: false, recorded: false },
      status: runtimeStatus(pod, [], []),
    });
    publishStatus(statuses, { ...view, waiting: new Map() }, cause, {
      ...{ clock: new ManualClock(), journal: new MemoryRecorder(), runtimeName: "sim", hostIPs: [] },
      ...{ probes: () => new Map(), features: () => ({ recursiveReadOnlyMounts: false }) },
    });
    return statuses.get(pod.metadata.uid);
  };
  // An ending like an eviction's.
  const evicted: Ending = {
    cause: { code: reason, message },
    ...{ outcome: "failed", lasts: true, graceSeconds: 1, disruption: message },
  };
  const gone = published(evicted);
  assert.deepEqual([gone?.phase, gone?.reason, gone?.message], ["Failed", reason, message]);
  const disruption = gone?.conditions?.find(({ type }) => type === "DisruptionTarget");
  assert.deepEqual(
    [disruption?.status, disruption?.reason, disruption?.message],
    ["True", "TerminationByKubelet", message],
  );
  const turnedAway = published(refused(rejection(reason, "The node had condition: [MemoryPressure]. "), 1));
  assert.deepEqual([turnedAway?.phase, turnedAway?.reason, turnedAway?.conditions], ["Failed", reason, undefined]);
});
