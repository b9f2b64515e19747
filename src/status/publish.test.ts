import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import { runtimeContainer, runtimeStatus } from "../../test/support/runtime-status.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import type { Pod } from "../api/pod.ts";
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
      ...{ clock: new ManualClock(), journal, runtimeName: "sim", hostIPs, isAlone: false },
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
      ...{ clock: new ManualClock(), journal: new MemoryRecorder(), runtimeName: "sim", hostIPs: [], isAlone: true },
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

describe("after a restart of podwright", () => {
  const sourced = (source: string): Pod => {
    const pod = podOf({ containers: [runs("c")], activeDeadlineSeconds: 100 });
    return { ...pod, metadata: { ...pod.metadata, annotations: { "kubernetes.io/config.source": source } } };
  };

  /** The start time of a pod of a node in no cluster, before and after, and how the pod is when its deadline is over. */
  async function restarted(pod: Pod): Promise<readonly unknown[]> {
    const scene = new Scene();
    scene.node.add(pod);
    await scene.pass(60_000);
    const before = Date.parse(scene.status()?.startTime ?? "");
    scene.node.kill();
    await scene.pass(5000);
    scene.node.start();
    await scene.pass(30_000);
    const [after, { phase }] = [Date.parse(scene.status()?.startTime ?? ""), scene.status() ?? {}];
    await scene.pass(40_000);
    return [after - before >= 60_000, phase, scene.status()?.phase, scene.status()?.reason];
  }

  const overdue = ["Running", "Failed", "DeadlineExceeded"];

  test("a static pod of a node in no cluster has a new start time, and still its deadline", async () => {
    assert.deepEqual(await restarted(sourced("file")), [true, ...overdue]);
    assert.deepEqual(await restarted(sourced("http")), [true, ...overdue]);
  });

  test("a pod of podwright run keeps its start time", async () => {
    assert.deepEqual(await restarted(sourced("run")), [false, ...overdue]);
  });

  test("a static pod of a node in a cluster keeps its start time, also before its mirror pod is seen", () => {
    const pod = sourced("file");
    const view = firstView({
      ...{ ref: podRef(pod), pod, state: { kind: "syncing" } },
      status: runtimeStatus(pod, [runtimeContainer("c")]),
    });
    const startTimes = [false, true].map((isAlone) => {
      const statuses = new StatusManager(new MemoryRecorder());
      const clock = new ManualClock();
      publishStatus(statuses, { ...view, startedAt: 1000 }, cause, {
        ...{ clock, journal: new MemoryRecorder(), runtimeName: "sim", hostIPs: [], isAlone },
        ...{ probes: () => new Map(), features: () => ({ recursiveReadOnlyMounts: false }) },
      });
      return statuses.get(pod.metadata.uid)?.startTime === "1970-01-01T00:00:01Z";
    });
    assert.deepEqual(startTimes, [true, false]);
  });
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
      ...{ clock: new ManualClock(), journal: new MemoryRecorder(), runtimeName: "sim", hostIPs: [], isAlone: true },
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
