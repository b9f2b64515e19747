import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { podUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import type { NameOf } from "../journal/vocabulary.ts";
import { NodeMetrics } from "./node-metrics.ts";

const pod = { namespace: "ns", name: "web", uid: podUid("u") };

/** Series of a family after these entries. */
function counted(name: string, entries: readonly JournalInput[]): string[] {
  const metrics = new NodeMetrics(new ManualClock());
  for (const entry of entries) metrics.recorded({ pod, ...entry });
  return shown(metrics, name);
}

/** Series of a family as `<labels> <value>`; of histograms the number of observations. */
function shown(metrics: NodeMetrics, name: string): string[] {
  const family = metrics.registry.families().find((each) => each.name === name);
  assert.ok(family, name);
  if (family.type === "histogram") {
    return family.samples.map(({ labels, buckets }) => `${labels.join(",")} ${buckets.reduce((a, b) => a + b, 0)}`);
  }
  return family.samples.map(({ labels, value }) => `${labels.join(",")} ${value}`);
}

test("a worker's start is timed from the pod's arrival, and a pod that went without a step is forgotten", () => {
  const starts = [false, true].map((isGone) => {
    const metrics = new NodeMetrics(new ManualClock());
    metrics.podAdded(podWith({}, pod));
    const cause = { code: "ManifestRemoved", message: "" } as const;
    if (isGone) metrics.recorded({ kind: "decision", what: "PodFinished", message: "", cause, pod });
    metrics.runtime.stepped(pod, "syncing", 10);
    return shown(metrics, "kubelet_pod_worker_start_duration_seconds");
  });
  assert.deepEqual(starts, [[" 1"], [" 0"]]);
});

test("preempted pods are counted by the scarce resource", () => {
  const preempting = (resource: string): JournalInput => {
    const cause = { code: "CriticalPod", message: "" } as const;
    return { kind: "decision", what: "Preempting", message: "", cause, data: { resource } };
  };
  const entries = [preempting("cpu"), preempting("pods"), preempting("cpu")];
  assert.deepEqual(counted("kubelet_preemptions", entries), ["cpu 2", "pods 1"]);
});

test("rejected pods are counted by upstream's reasons, others under a common name", () => {
  const refused = (what: NameOf<"decision">): JournalInput => {
    return { kind: "decision", what, message: "", cause: { code: "PodAdded", message: "" } };
  };
  const reasons = [
    "OutOfcpu",
    "OutOfexample.org/gpu",
    "OutOfhugepages-2Mi",
    "NodePorts",
    "TaintToleration",
    "Evicted",
  ] as const;
  assert.deepEqual(counted("kubelet_admission_rejections_total", reasons.map(refused)), [
    "OutOfcpu 1",
    "OutOfExtendedResources 2",
    "Other 2",
    "Evicted 1",
  ]);
});

test("runs of credential plugins, and their failures, are counted by plugin", () => {
  const asked = (provider: string, result: "done" | "failed"): JournalInput => {
    const outcome = { kind: "outcome", what: "AskCredentialProvider", message: "" } as const;
    return { ...outcome, result, durationMs: 20, data: { provider } };
  };
  const entries = [asked("ecr", "done"), asked("acr", "failed"), asked("ecr", "failed"), asked("ecr", "done")];
  assert.deepEqual(counted("kubelet_credential_provider_plugin_duration", entries), ["ecr 3", "acr 1"]);
  assert.deepEqual(counted("kubelet_credential_provider_plugin_errors_total", entries), ["acr 1", "ecr 1"]);
});

test("evictions are counted by their signal, with the age of the observation", () => {
  const evicted = (signal: string, ages: Record<string, number> = {}): JournalInput => {
    const cause = { code: "EvictionThresholdMet", message: "" } as const;
    return { kind: "decision", what: "PodEvicted", message: "", cause, data: { signal, ages } };
  };
  const entries = [
    evicted("memory.available", { "memory.available": 12, "nodefs.available": 12 }),
    evicted("emptydirfs.limit"),
    evicted("memory.available", { "memory.available": 8 }),
  ];
  assert.deepEqual(counted("kubelet_evictions", entries), ["memory.available 2", "emptydirfs.limit 1"]);
  assert.deepEqual(counted("kubelet_eviction_stats_age_seconds", entries), [
    "memory.available 2",
    "nodefs.available 1",
  ]);
  assert.deepEqual(counted("kubelet_admission_rejections_total", entries), []);
});

test("collected images are counted by reason", () => {
  const removed = (reason: string, result: "done" | "failed"): JournalInput => {
    return { kind: "outcome", what: "RemoveImage", message: "", result, data: { reason } };
  };
  const entries = [
    removed("space", "done"),
    removed("age", "done"),
    removed("space", "failed"),
    removed("space", "done"),
  ];
  assert.deepEqual(counted("kubelet_image_garbage_collected_total", entries), ["space 2", "age 1"]);
});

test("image volumes are counted as requested and mounted, or as failed with the runtime's own word for it", () => {
  const created = (result: "done" | "failed", message: string, data = {}): JournalInput => {
    return { kind: "outcome", what: "CreateContainer", container: "c", result, message, data };
  };
  const data = { imageVolumes: 1, imageMounts: 2 };
  const entries = [
    created("done", "", data),
    created("done", ""),
    created("failed", "ImageVolumeMountFailed: no such path", data),
    created("failed", "disk full", data),
  ];
  const count = (what: string): string[] => counted(`kubelet_image_volume_${what}_total`, entries);
  assert.deepEqual([count("requested"), count("mounted_succeed"), count("mounted_errors")], [[" 3"], [" 4"], [" 2"]]);
});

test("a container that waits for a volume's image is a start, and no failed one", () => {
  const pull = { kind: "outcome", what: "PullImage", container: "c", result: "failed", message: "" } as const;
  const missing = { kind: "observation", what: "VolumeImageMissing", container: "c", message: "" } as const;
  const data = { volume: "v" };
  const entries: JournalInput[] = [
    { ...pull, data },
    { ...missing, data },
  ];
  assert.deepEqual(counted("kubelet_started_containers_total", entries), ["container 1"]);
  assert.deepEqual(counted("kubelet_started_containers_errors_total", entries), []);
});
