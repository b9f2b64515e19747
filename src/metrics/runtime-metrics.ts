import type { PodUid } from "../base/ids.ts";
import type {
  AccessJudgement,
  AskedImage,
  Observer,
  ProbeName,
  SELinuxOutcome,
  StepState,
  StorageOperation,
} from "../journal/observer.ts";
import type { PodRef } from "../journal/entry.ts";
import { defaultBounds, runtimeBounds, storageBounds } from "./buckets.ts";
import { ImageMetrics } from "./image-metrics.ts";
import type { Registry } from "./registry.ts";
import { SELinuxMetrics } from "./selinux-metrics.ts";

/** Upstream's names of CRI's methods where they are not theirs in snake case. */
const operations: Readonly<Record<string, string>> = {
  RunPodSandbox: "run_podsandbox",
  StopPodSandbox: "stop_podsandbox",
  RemovePodSandbox: "remove_podsandbox",
  PodSandboxStatus: "podsandbox_status",
  ListPodSandbox: "list_podsandbox",
  PodSandboxStats: "podsandbox_stats",
  ListPodSandboxStats: "list_podsandbox_stats",
  ListPodSandboxMetrics: "list_podsandbox_metrics",
  UpdateContainerResources: "update_container",
  UpdatePodSandboxResources: "update_podsandbox_resources",
  ReopenContainerLog: "reopen_container_log",
};

/** `operation_type` of a CRI method. */
export function operationType(method: string): string {
  const known = operations[method];
  return known ?? method.replaceAll(/(?<=[a-z])[A-Z]/gu, (letter) => `_${letter}`).toLowerCase();
}

/** What upstream calls a step of a pod's worker in that state. */
const steps: Readonly<Record<StepState, string>> = {
  syncing: "sync",
  terminating: "kill",
  terminated: "terminated",
  finished: "terminated",
};

const probeTypes = { liveness: "Liveness", readiness: "Readiness", startup: "Startup" } as const;
const probeResults = { success: "successful", warning: "successful", failure: "failed", error: "unknown" } as const;

function protectionInstruments(registry: Registry) {
  const gauge = (which: "min" | "low", help: string) =>
    registry.gauge(`kubelet_memory_qos_node_memory_${which}_bytes`, help, []);
  return {
    min: gauge(
      "min",
      "Total cgroup v2 memory.min in bytes for Guaranteed pods. This memory is hard-reserved and never reclaimed by the kernel.",
    ),
    low: gauge(
      "low",
      "Total cgroup v2 memory.low in bytes for Burstable pods. This memory is soft-reserved and may be reclaimed under extreme pressure.",
    ),
  };
}

/** Observations beside the journal: calls, relists, probes, steps, images, clean-ups. */
export class RuntimeMetrics implements Observer {
  readonly #clock: { now(): number; monotonic(): number };
  readonly #calls;
  readonly #callErrors;
  readonly #callSeconds;
  readonly #relistSeconds;
  readonly #relistInterval;
  readonly #relistPodSeconds;
  readonly #lastSeen;
  readonly #workerSeconds;
  readonly #workerStart;
  readonly #probes;
  readonly #probeSeconds;
  readonly #images: ImageMetrics;
  readonly #upkeep;
  readonly #protection;
  readonly #seLinux: SELinuxMetrics;
  #lastRelistMs: number | undefined;
  /** Pods whose worker has not done its first step, with when they were added. */
  readonly #added = new Map<PodUid, number>();

  /** @param probes where probes are shown: an endpoint of its own */
  constructor(registry: Registry, probes: Registry, clock: { now(): number; monotonic(): number }) {
    this.#clock = clock;
    this.#images = new ImageMetrics(registry);
    this.#upkeep = upkeepInstruments(registry);
    // From the start, as upstream: otherwise an increase from nothing to 1 would be none.
    for (const label of ["", "true"]) this.#upkeep.restarted.add([label], 0);
    this.#protection = protectionInstruments(registry);
    this.#seLinux = new SELinuxMetrics(registry);
    const operation = ["operation_type"] as const;
    this.#calls = registry.counter("kubelet_runtime_operations_total", "Calls to the runtime", operation);
    this.#callErrors = registry.counter(
      "kubelet_runtime_operations_errors_total",
      "Failed calls to the runtime",
      operation,
    );
    this.#callSeconds = registry.histogram(
      "kubelet_runtime_operations_duration_seconds",
      "Duration of calls to the runtime",
      operation,
      runtimeBounds,
    );
    this.#relistSeconds = registry.histogram(
      "kubelet_pleg_relist_duration_seconds",
      "Duration of a PLEG relist",
      [],
      defaultBounds,
    );
    this.#relistInterval = registry.histogram(
      "kubelet_pleg_relist_interval_seconds",
      "Interval between PLEG relists",
      [],
      defaultBounds,
    );
    this.#relistPodSeconds = registry.histogram(
      "kubelet_pleg_pod_relist_duration_seconds",
      "Duration of a pod's inspection",
      [],
      defaultBounds,
    );
    this.#lastSeen = registry.gauge(
      "kubelet_pleg_last_seen_seconds",
      "Time of the last PLEG relist, in seconds since 1970",
      [],
    );
    this.#workerSeconds = registry.histogram(
      "kubelet_pod_worker_duration_seconds",
      "Duration of a pod worker's step, its wait for a fresh observation included",
      operation,
      defaultBounds,
    );
    this.#workerStart = registry.histogram(
      "kubelet_pod_worker_start_duration_seconds",
      "Time from the first sight of a pod until its worker starts",
      [],
      defaultBounds,
    );
    this.#probes = probes.counter(
      "prober_probe_total",
      "Probes by result",
      ["container", "namespace", "pod", "pod_uid", "probe_type", "result"],
      "BETA",
    );
    this.#probeSeconds = probes.histogram(
      "prober_probe_duration_seconds",
      "Duration of probes",
      ["container", "namespace", "pod", "probe_type"],
      defaultBounds,
    );
  }

  called(method: string, durationMs: number, failed: boolean): void {
    const type = operationType(method);
    this.#calls.add([type]);
    this.#callSeconds.observe([type], durationMs / 1000);
    if (failed) this.#callErrors.add([type]);
  }

  relisted(durationMs: number): void {
    const nowMs = this.#clock.monotonic();
    this.#relistSeconds.observe([], durationMs / 1000);
    if (this.#lastRelistMs !== undefined) this.#relistInterval.observe([], (nowMs - this.#lastRelistMs) / 1000);
    this.#lastRelistMs = nowMs;
    this.#lastSeen.set([], this.#clock.now() / 1000);
  }

  inspected(durationMs: number): void {
    this.#relistPodSeconds.observe([], durationMs / 1000);
  }

  probed({ pod, container, type }: ProbeName, outcome: keyof typeof probeResults, durationMs: number): void {
    const { namespace, name, uid } = pod;
    this.#probes.add([container, namespace, name, uid, probeTypes[type], probeResults[outcome]]);
    // What could not be made took no time of the target's.
    if (outcome === "error") return;
    this.#probeSeconds.observe([container, namespace, name, probeTypes[type]], durationMs / 1000);
  }

  /** Series of pods that are gone would pile up. */
  probeEnded({ pod, container, type }: ProbeName): void {
    const wanted = probeTypes[type];
    this.#probes.remove(([name, namespace, podName, uid, probe]) => {
      return (
        name === container && namespace === pod.namespace && podName === pod.name && uid === pod.uid && probe === wanted
      );
    });
    this.#probeSeconds.remove(([name, namespace, podName, probe]) => {
      return name === container && namespace === pod.namespace && podName === pod.name && probe === wanted;
    });
  }

  stepped({ uid }: PodRef, state: StepState, durationMs: number): void {
    this.#workerSeconds.observe([steps[state]], durationMs / 1000);
    const addedMs = this.#added.get(uid);
    if (addedMs === undefined) return;
    this.#added.delete(uid);
    this.#workerStart.observe([], Math.max(0, this.#clock.monotonic() - durationMs - addedMs) / 1000);
  }

  podReturned(isStatic: boolean): void {
    this.#upkeep.restarted.add([isStatic ? "true" : ""]);
  }

  leftoversSwept(found: number, failed: number): void {
    this.#upkeep.swept.set([], found);
    this.#upkeep.sweptErrors.set([], failed);
  }

  imageAsked(policy: string, asked: AskedImage): void {
    this.#images.imageAsked(policy, asked);
  }

  accessJudged(judgement: AccessJudgement): void {
    this.#images.accessJudged(judgement);
  }

  memoryProtected({ guaranteedBytes, burstableBytes }: Parameters<Observer["memoryProtected"]>[0]): void {
    this.#protection.min.set([], Number(guaranteedBytes));
    this.#protection.low.set([], Number(burstableBytes));
  }

  volumeMeasured(source: string, durationMs: number): void {
    this.#upkeep.volumeSeconds.observe([source], durationMs / 1000);
  }

  storageOperation({ plugin, name, failed, migrated, durationMs }: StorageOperation): void {
    const labels = [plugin, name, failed ? "fail-unknown" : "success", `${migrated}`] as const;
    this.#upkeep.storageSeconds.observe(labels, durationMs / 1000);
  }

  volumeMounted(plugin: string, durationMs: number): void {
    this.#upkeep.mountSeconds.observe([plugin, "overall_volume_mount"], durationMs / 1000);
  }

  seLinuxVolume(outcome: SELinuxOutcome, driver?: string): void {
    this.#seLinux.counted(outcome, driver);
  }

  /** The node was given a pod. */
  podAdded(uid: PodUid): void {
    this.#added.set(uid, this.#clock.monotonic());
  }

  /** The pod is gone, maybe without a step: it waited for room, or for its name. */
  podFinished(uid: PodUid): void {
    this.#added.delete(uid);
  }
}

function upkeepInstruments(registry: Registry) {
  return {
    volumeSeconds: registry.histogram(
      "kubelet_volume_metric_collection_duration_seconds",
      "Duration of a volume's measurement",
      ["metric_source"],
      defaultBounds,
    ),
    storageSeconds: registry.histogram(
      "storage_operation_duration_seconds",
      "Storage operation duration",
      ["volume_plugin", "operation_name", "status", "migrated"],
      storageBounds,
    ),
    mountSeconds: registry.histogram(
      "volume_operation_total_seconds",
      "Storage operation end to end duration in seconds",
      ["plugin_name", "operation_name"],
      storageBounds,
    ),
    restarted: registry.counter(
      "kubelet_restarted_pods_total",
      "Number of pods that have been restarted because they were deleted and recreated with the same UID while the kubelet was watching them (common for static pods, extremely uncommon for API pods)",
      ["static"],
    ),
    swept: registry.gauge(
      "kubelet_orphan_pod_cleaned_volumes",
      "The total number of orphaned Pods whose volumes were cleaned in the last periodic sweep.",
      [],
    ),
    sweptErrors: registry.gauge(
      "kubelet_orphan_pod_cleaned_volumes_errors",
      "The number of orphaned Pods whose volumes failed to be cleaned in the last periodic sweep.",
      [],
    ),
  };
}
