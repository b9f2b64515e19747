import type { Pod } from "../api/pod.ts";
import type { WorkerState } from "../pods/worker-state.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import type { Family, Sample, Stability } from "./family.ts";

/** A pod as gauges count it. */
export interface CountedPod {
  /** Undefined: only the runtime knows it. */
  readonly pod: Pod | undefined;
  /** Not from an API server. */
  readonly isStatic: boolean;
  /** A source has it. */
  readonly wanted: boolean;
  /** No source had it when it was found in the runtime. */
  readonly isOrphan: boolean;
  /** Of its worker; undefined: it waits for one. */
  readonly state: WorkerState["kind"] | undefined;
  /** The node has rejected it. */
  readonly isRefused: boolean;
  readonly observed: PodStatus;
  /** Why a resize is pending, in upstream's words. */
  readonly pendingResize: string | undefined;
  readonly resizing: boolean;
  /** Upstream's full names of the plugins of its volumes, as far as they are known. */
  readonly volumePlugins: readonly string[];
}

export interface PodCounts {
  readonly pods: readonly CountedPod[];
  /** At the API server, whether or not their static pods are still wanted. */
  readonly mirrorPods: number;
}

/** Present gauges of pods. Pure. */
export function podGauges({ pods, mirrorPods }: PodCounts): Family[] {
  const wanted = pods.filter((each) => each.wanted);
  // As upstream's filterOutInactivePods: of the pods that sources have, whatever else still stops.
  const active = wanted.filter(({ state, isRefused }) => !isRefused && !hasStopped(state));
  const running = pods.filter(({ observed }) => observed.sandboxes.some(({ ready }) => ready));
  const byStatic = (list: readonly CountedPod[]): Sample[] =>
    ["", "true"].map((label) => {
      return { labels: [label], value: list.filter(({ isStatic }) => isStatic === (label === "true")).length };
    });
  const ephemeral = wanted.reduce((sum, { pod }) => sum + (pod?.spec.ephemeralContainers?.length ?? 0), 0);
  return [
    gauge("kubelet_active_pods", "Desired pods that count when others are admitted", ["static"], byStatic(active)),
    gauge("kubelet_desired_pods", "Pods that the sources deliver", ["static"], byStatic(wanted)),
    gauge("kubelet_mirror_pods", "Mirror pods at the API server", [], one(mirrorPods)),
    gauge("kubelet_managed_ephemeral_containers", "Ephemeral containers of desired pods", [], one(ephemeral)),
    gauge("kubelet_running_pods", "Pods with a ready sandbox", [], one(running.length)),
    gauge("kubelet_running_containers", "Containers by state", ["container_state"], containers(pods)),
    gauge(
      "kubelet_working_pods",
      "Pods with a worker, by its state and the pod's source",
      ["lifecycle", "config", "static"],
      working(pods),
    ),
    gauge(
      "kubelet_pod_pending_resizes",
      "Pods with a pending resize",
      ["reason"],
      count(
        pods.filter(({ pendingResize }) => pendingResize !== undefined),
        ({ pendingResize = "" }) => [pendingResize.toLowerCase()],
      ),
    ),
    gauge(
      "kubelet_pod_in_progress_resizes",
      "Pods with a resize in progress",
      [],
      one(pods.filter(({ resizing }) => resizing).length),
    ),
    gauge(
      "volume_manager_total_volumes",
      "Number of volumes in Volume Manager",
      ["plugin_name", "state"],
      volumes(wanted, running),
    ),
  ];
}

const lifecycles: Readonly<Record<WorkerState["kind"], string>> = {
  syncing: "sync",
  terminating: "terminating",
  terminated: "terminated",
  finished: "terminated",
};

/** What upstream knows of a pod that has a worker: where it comes from, and whether it is static. */
const origins = [
  ["desired", ""],
  ["desired", "true"],
  ["orphan", ""],
  ["orphan", "true"],
  ["runtime_only", "unknown"],
] as const;

/**
 * Pods with a worker, as upstream every combination that there can be, also without any pod: alerts and tests expect
 * the zeros. A rejected pod has a worker here, but not there.
 */
function working(pods: readonly CountedPod[]): Sample[] {
  const found = pods.flatMap((pod) => {
    const isOnlyRefused = pod.isRefused && hasStopped(pod.state);
    return pod.state === undefined || isOnlyRefused ? [] : [[lifecycles[pod.state], ...originOf(pod)].join(" ")];
  });
  return ["sync", "terminating", "terminated"].flatMap((lifecycle) => {
    return origins.map(([config, isStatic]): Sample => {
      const labels = [lifecycle, config, isStatic];
      return { labels, value: found.filter((each) => each === labels.join(" ")).length };
    });
  });
}

function originOf({ wanted, isOrphan, isStatic }: CountedPod): (typeof origins)[number] {
  if (wanted) return ["desired", isStatic ? "true" : ""];
  if (isOrphan) return ["runtime_only", "unknown"];
  return ["orphan", isStatic ? "true" : ""];
}

function hasStopped(state: CountedPod["state"]): boolean {
  return state === "terminated" || state === "finished";
}

function containers(pods: readonly CountedPod[]): Sample[] {
  const all = pods.flatMap(({ observed }) => observed.containers);
  return count(all, ({ state }) => [state]);
}

function volumes(wanted: readonly CountedPod[], running: readonly CountedPod[]): Sample[] {
  const of = (pods: readonly CountedPod[], state: string): Sample[] => {
    const all = pods.flatMap(({ volumePlugins }) => volumePlugins);
    return count(all, (plugin) => [plugin, state]);
  };
  return [...of(wanted, "desired_state_of_world"), ...of(running, "actual_state_of_world")];
}

function count<T>(items: readonly T[], labelsOf: (item: T) => readonly string[]): Sample[] {
  const counts = new Map<string, { readonly labels: readonly string[]; value: number }>();
  for (const item of items) {
    const labels = labelsOf(item);
    const entry = counts.get(labels.join("\u0000")) ?? { labels, value: 0 };
    entry.value++;
    counts.set(labels.join("\u0000"), entry);
  }
  return [...counts.values()];
}

function one(value: number): Sample[] {
  return [{ labels: [], value }];
}

function gauge(
  name: string,
  help: string,
  labels: readonly string[],
  samples: readonly Sample[],
  stability: Stability = "ALPHA",
): Family {
  return { name, help, type: "gauge", stability, labels, samples };
}
