import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import type { ResourceRequirements } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import { NodeMetrics } from "./node-metrics.ts";

const ref = { namespace: "ns", name: "web", uid: podUid("u") };

/** An entry for which there may be no words. */
type Unsaid<T> = T extends unknown ? Omit<T, "message"> & { readonly message?: string } : never;

function setUp() {
  const clock = new ManualClock();
  const metrics = new NodeMetrics(clock);
  /** Series of a family, as `<labels> <value>`; of histograms the number of observations. */
  const shown = (name: string): string[] => {
    const family = metrics.registry.families().find((each) => each.name === name);
    assert.ok(family, name);
    if (family.type === "histogram") {
      return family.samples.map(({ labels, buckets }) => `${labels.join(",")} ${buckets.reduce((a, b) => a + b, 0)}`);
    }
    return family.samples.map(({ labels, value }) => `${labels.join(",")} ${value}`);
  };
  const tell = (entry: Unsaid<JournalInput>): void => metrics.recorded({ message: "", pod: ref, ...entry });
  return { clock, metrics, shown, tell };
}

function pod(
  resources: ResourceRequirements,
  sidecar: ResourceRequirements = {},
  first: ResourceRequirements = {},
): Pod {
  return podWith(
    {
      initContainers: [
        { name: "side", restartPolicy: "Always", resources: sidecar },
        { name: "first", resources: first },
      ],
      containers: [{ name: "c", resources }],
    },
    ref,
  );
}

test("requested resizes are counted by resource, requirement and direction, also of init containers", () => {
  const { metrics, shown } = setUp();
  metrics.podChanged(pod({ requests: { cpu: "9" } }));
  metrics.podAdded(pod({ requests: { cpu: "100m", memory: "1Gi" }, limits: { cpu: "1" } }));
  metrics.podChanged(pod({ requests: { cpu: "0.1", memory: "512Mi" }, limits: { memory: "2Gi" } }));
  metrics.podChanged(
    pod({ requests: { cpu: "0.1", memory: "1Gi" }, limits: { memory: "2Gi" } }, { limits: { cpu: 2 } }),
  );
  metrics.podChanged(
    pod(
      { requests: { cpu: "0.1", memory: "1Gi" }, limits: { memory: "2Gi" } },
      { limits: { cpu: 2 } },
      { requests: { cpu: 1 } },
    ),
  );
  assert.deepEqual(shown("kubelet_container_requested_resizes_total").toSorted(), [
    "cpu,limits,add 1",
    "cpu,limits,remove 1",
    "cpu,requests,add 1",
    "memory,limits,add 1",
    "memory,requests,decrease 1",
    "memory,requests,increase 1",
  ]);
});

test("deferred resizes are counted by what let them be granted, with the duration of granted ones", async () => {
  const { clock, shown, tell } = setUp();
  const started = (trigger?: string): void =>
    tell({ kind: "decision", what: "ResizeStarted", ...(trigger && { data: { trigger } }) });
  started();
  for (const code of ["ManifestAdded", "PodsRemoved", "ResizeCompleted", "ResizeRetry", "RoomMade"]) started(code);
  await clock.advance(70);
  tell({ kind: "observation", what: "ResizeError" });
  tell({ kind: "observation", what: "ResizeCompleted" });
  tell({ kind: "observation", what: "ResizeCompleted" });
  started("ManifestChanged");
  tell({ kind: "decision", what: "ResizeInfeasible", message: "In-place resize of containers with swap …" });
  assert.deepEqual(
    shown("kubelet_pod_deferred_accepted_resizes_total"),
    ["pods_added", "pods_removed", "pod_resized", "periodic_retry", "pod_terminated", "pod_updated"].map(
      (trigger) => `${trigger} 1`,
    ),
  );
  assert.deepEqual(shown("kubelet_pod_resize_duration_milliseconds"), ["false 1", "true 1"]);
  assert.deepEqual(shown("kubelet_pod_infeasible_resizes_total"), ["swap_limitation 1"]);
});

test("interrupted sleep hooks and orphaned pods are counted", () => {
  const { shown, tell } = setUp();
  const hook = (message: string, result: "done" | "failed"): void => {
    const about = { what: "PreStopHook", container: "c" } as const;
    tell({ kind: "action", ...about, message });
    tell({ kind: "outcome", ...about, result });
  };
  hook("run the preStop hook of container c: sleep 5 s", "done");
  hook("run the preStop hook of container c: sleep 5 s", "failed");
  hook("run the preStop hook of container c: execute sleep", "failed");
  tell({ kind: "decision", what: "PodTerminating", cause: { code: "OrphanedPod", message: "" } });
  tell({ kind: "decision", what: "PodTerminating", cause: { code: "ManifestRemoved", message: "" } });
  assert.deepEqual(shown("kubelet_sleep_action_terminated_early_total"), [" 1"]);
  assert.deepEqual(shown("kubelet_orphaned_runtime_pods_total"), [" 1"]);
});
