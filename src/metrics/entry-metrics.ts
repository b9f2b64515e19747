import type { Pod, PodSpec } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { JournalInput, PodRef } from "../journal/entry.ts";
import { type EntryName, termOf, terms } from "../journal/vocabulary.ts";
import type { Term } from "../journal/vocabulary/term.ts";
import { containerBounds, defaultBounds, pullBounds, statusBounds } from "./buckets.ts";
import type { Counter } from "./instruments.ts";
import { imageSizeRange } from "./image-size.ts";
import { PodStartMetrics } from "./pod-start-metrics.ts";
import type { Registry } from "./registry.ts";

export interface EntryMetricsDependencies {
  /** A pod of the node; undefined: removed, or never delivered. */
  readonly pod: (uid: PodUid) => Pod | undefined;
  /** Wall clock ms. */
  readonly now: () => number;
}

const hooks: ReadonlySet<EntryName> = new Set(["PostStartHook", "PreStopHook"]);
/** The end of what a hook's action says. */
const sleeps = /: sleep \d+ s$/u;

/** The beginning of a runtime's message when it cannot mount an image (cri-api's ErrImageVolumeMountFailed). */
const imageMountFailed = "ImageVolumeMountFailed";

type ContainerType = "container" | "init_container" | "ephemeral_container";

/** The journal, counted: starts, ends, pulls, sandboxes, statuses. It only reads entries. */
export class EntryMetrics {
  readonly #deps: EntryMetricsDependencies;
  readonly #starts: PodStartMetrics;
  readonly #containers;
  readonly #pods;
  readonly #others;
  /** Plain counters of entries, as the vocabulary has them. */
  readonly #counters: ReadonlyMap<string, Counter<readonly []>>;
  /** Hooks that sleep now. */
  readonly #sleeping = new Set<string>();

  constructor(registry: Registry, deps: EntryMetricsDependencies) {
    this.#deps = deps;
    this.#starts = new PodStartMetrics(registry, deps);
    this.#containers = containerInstruments(registry);
    this.#pods = podInstruments(registry);
    this.#others = otherInstruments(registry);
    this.#counters = countersOf(registry);
  }

  /** Counts an entry when it is recorded. */
  recorded(entry: JournalInput): void {
    this.#starts.recorded(entry);
    if (entry.kind !== "outcome") this.#counters.get(entry.what)?.add([]);
    if (entry.kind === "outcome") this.#outcome(entry);
    else if (entry.kind === "observation") this.#observation(entry);
    else if (entry.kind === "action") this.#action(entry);
    else if (entry.kind === "decision") this.#decision(entry);
  }

  /** The node was given a pod. */
  added(pod: Pod): void {
    this.#containers.containersPerPod.observe([], pod.spec.containers.length);
  }

  #outcome(entry: JournalInput): void {
    const { what, result, durationMs = 0, data = {} } = entry;
    const failed = result !== "done";
    if (this.#sleeping.delete(hookKey(entry)) && failed) this.#others.sleepsCutOff.add([]);
    const seconds = durationMs / 1000;
    const type = this.#containerType(entry);
    switch (what) {
      case "StartContainer":
        this.#containers.started.add([type]);
        if (failed) this.#containers.startErrors.add([type, "RunContainerError"]);
        break;
      case "CreateContainer":
        if (failed) this.#startFailed(type, "CreateContainerError");
        this.#imageVolumes(entry);
        break;
      case "PullImage":
        if (result === "failed" && !isForVolume(entry)) this.#startFailed(type, "ErrImagePull");
        if (!failed) {
          this.#containers.pullSeconds.observe(
            [imageSizeRange(Number(data["sizeBytes"]))],
            Number(data["pullMs"]) / 1000,
          );
        }
        break;
      case "RunPodSandbox":
        this.#sandbox(entry, seconds, failed);
        break;
      case "PatchPodStatus":
        if (!failed) this.#pods.statusSeconds.observe([], seconds);
        break;
      case "RemoveImage":
        if (!failed && typeof data["reason"] === "string") this.#others.imagesCollected.add([data["reason"]]);
        break;
      case "AskCredentialProvider":
        this.#asked(entry, seconds, failed);
        break;
      default:
    }
  }

  /** As upstream, every mount of a start counts as successful but those of a creation that failed for one of them. */
  #imageVolumes({ result, message, data = {} }: JournalInput): void {
    const { imageVolumes, imageMounts } = data;
    if (typeof imageVolumes !== "number" || typeof imageMounts !== "number") return;
    const failed = result === "failed" && message.startsWith(imageMountFailed);
    const { requested, mounted, errors } = this.#others.imageVolumes;
    requested.add([], imageVolumes);
    (failed ? errors : mounted).add([], imageMounts);
  }

  /** A called credential provider plugin. */
  #asked({ data = {} }: JournalInput, seconds: number, failed: boolean): void {
    const { provider } = data;
    if (typeof provider !== "string") return;
    this.#others.pluginSeconds.observe([provider], seconds);
    if (failed) this.#others.pluginErrors.add([provider]);
  }

  #notStarted(entry: JournalInput): void {
    const { startError } = termOf(entry.what);
    // As upstream, a start without the image of a volume is no failed one.
    if (entry.what === "VolumeImageMissing") this.#containers.started.add([this.#containerType(entry)]);
    if (startError !== undefined && !isForVolume(entry)) this.#startFailed(this.#containerType(entry), startError);
  }

  #startFailed(type: ContainerType, code: string): void {
    this.#containers.started.add([type]);
    this.#containers.startErrors.add([type, code]);
  }

  #specOf(pod: PodRef | undefined): PodSpec | undefined {
    return pod && this.#deps.pod(pod.uid)?.spec;
  }

  #sandbox({ pod }: JournalInput, seconds: number, failed: boolean): void {
    const spec = this.#specOf(pod);
    const handler = spec?.runtimeClassName ?? "";
    this.#pods.sandboxSeconds.observe([handler], seconds);
    if (!failed) return;
    this.#pods.sandboxErrors.add([handler]);
    this.#pods.startedPodErrors.add([]);
    if (spec?.hostUsers === false) this.#pods.startedUserPodErrors.add([]);
  }

  #action(entry: JournalInput): void {
    const { what, pod, message } = entry;
    if (hooks.has(what) && sleeps.test(message)) this.#sleeping.add(hookKey(entry));
    if (what === "RunPodSandbox") {
      this.#pods.startedPods.add([]);
      if (this.#specOf(pod)?.hostUsers === false) this.#pods.startedUserPods.add([]);
    }
  }

  #decision(entry: JournalInput): void {
    const { what, pod, container, cause, data = {} } = entry;
    if (container !== undefined) this.#notStarted(entry);
    if (what === "PodTerminating" && cause?.code === "OrphanedPod") this.#pods.orphans.add([]);
    const { resource } = data;
    if (what === "PodEvicted") this.#evicted(data);
    if (what === "Preempting" && typeof resource === "string") this.#pods.preemptions.add([resource]);
    const { refuses } = termOf(what);
    const isPods = container === undefined && pod !== undefined && cause !== undefined;
    // A cluster has any number of names for resources: they must not become a metric's.
    if (isPods && refuses !== undefined) this.#pods.rejections.add([refuses === "own name" ? what : refuses]);
  }

  #evicted({ signal, ages }: NonNullable<JournalInput["data"]>): void {
    if (typeof signal === "string") this.#pods.evictions.add([signal]);
    if (typeof ages !== "object" || ages === null) return;
    for (const [about, ms] of Object.entries(ages)) this.#pods.evictionAges.observe([about], Number(ms) / 1000);
  }

  #observation(entry: JournalInput): void {
    const { what, data = {} } = entry;
    this.#notStarted(entry);
    if (what !== "ContainerDied" || data["exitCode"] === undefined) return;
    const reason = data["reason"];
    const type = this.#containerType(entry);
    this.#containers.terminated.add([type, `${Number(data["exitCode"])}`, typeof reason === "string" ? reason : ""]);
  }

  #containerType({ pod, container }: JournalInput): ContainerType {
    const spec = this.#specOf(pod);
    const has = (list: readonly { readonly name: string }[] | undefined): boolean =>
      list?.some(({ name }) => name === container) === true;
    if (has(spec?.initContainers)) return "init_container";
    return has(spec?.ephemeralContainers) ? "ephemeral_container" : "container";
  }
}

/** It is about the image of a volume, not about the container's own. */
function isForVolume({ data }: JournalInput): boolean {
  return data?.["volume"] !== undefined;
}

function hookKey({ what, pod, container }: JournalInput): string {
  return `${what} ${pod?.uid} ${container}`;
}

function countersOf(registry: Registry): ReadonlyMap<string, Counter<readonly []>> {
  const counted = Object.entries<Term>(terms).flatMap(([name, { counter }]) => (counter ? [{ name, counter }] : []));
  return new Map(counted.map(({ name, counter }) => [name, registry.counter(counter.name, counter.help, [])]));
}

function containerInstruments(registry: Registry) {
  return {
    started: registry.counter("kubelet_started_containers_total", "Container starts", ["container_type"]),
    startErrors: registry.counter("kubelet_started_containers_errors_total", "Failed container starts", [
      "container_type",
      "code",
    ]),
    terminated: registry.counter("kubelet_terminated_containers_total", "Terminated containers", [
      "container_type",
      "exit_code",
      "reason",
    ]),
    pullSeconds: registry.histogram(
      "kubelet_image_pull_duration_seconds",
      "Duration of image pulls, by image size",
      ["image_size_in_bytes"],
      pullBounds,
    ),
    containersPerPod: registry.histogram(
      "kubelet_containers_per_pod_count",
      "Number of containers of each pod that the node is given",
      [],
      containerBounds,
    ),
  };
}

function podInstruments(registry: Registry) {
  return {
    startedPods: registry.counter("kubelet_started_pods_total", "Pod sandbox starts", []),
    startedPodErrors: registry.counter("kubelet_started_pods_errors_total", "Failed pod sandbox starts", []),
    startedUserPods: registry.counter(
      "kubelet_started_user_namespaced_pods_total",
      "Starts of pods with a user namespace",
      [],
    ),
    startedUserPodErrors: registry.counter(
      "kubelet_started_user_namespaced_pods_errors_total",
      "Failed starts of pods with a user namespace",
      [],
    ),
    sandboxSeconds: registry.histogram(
      "kubelet_run_podsandbox_duration_seconds",
      "Duration of RunPodSandbox",
      ["runtime_handler"],
      defaultBounds,
    ),
    sandboxErrors: registry.counter("kubelet_run_podsandbox_errors_total", "Failed pod sandbox starts", [
      "runtime_handler",
    ]),
    orphans: registry.counter("kubelet_orphaned_runtime_pods_total", "Orphaned pods found in the runtime", []),
    preemptions: registry.counter("kubelet_preemptions", "Pods preempted for critical pods", ["preemption_signal"]),
    evictions: registry.counter("kubelet_evictions", "Evicted pods, by signal", ["eviction_signal"]),
    evictionAges: registry.histogram(
      "kubelet_eviction_stats_age_seconds",
      "Age of the observation that caused an eviction",
      ["eviction_signal"],
      defaultBounds,
    ),
    rejections: registry.counter("kubelet_admission_rejections_total", "Pods rejected by the node", ["reason"]),
    statusSeconds: registry.histogram(
      "kubelet_pod_status_sync_duration_seconds",
      "Duration of updates of a pod's status at the API server",
      [],
      statusBounds,
    ),
  };
}

function otherInstruments(registry: Registry) {
  const beta = (what: string, help: string): Counter<readonly []> => {
    return registry.counter(`kubelet_image_volume_${what}_total`, help, [], "BETA");
  };
  return {
    sleepsCutOff: registry.counter(
      "kubelet_sleep_action_terminated_early_total",
      "Sleep hooks cut short by the end of the grace period",
      [],
    ),
    imagesCollected: registry.counter(
      "kubelet_image_garbage_collected_total",
      "Total number of images garbage collected by the kubelet, whether through disk usage or image age.",
      ["reason"],
    ),
    pluginSeconds: registry.histogram(
      "kubelet_credential_provider_plugin_duration",
      "Duration of credential plugin calls",
      ["plugin_name"],
      defaultBounds,
    ),
    imageVolumes: {
      requested: beta("requested", "Number of requested image volumes."),
      mounted: beta("mounted_succeed", "Number of successful image volume mounts."),
      errors: beta("mounted_errors", "Number of failed image volume mounts."),
    },
    pluginErrors: registry.counter(
      "kubelet_credential_provider_plugin_errors_total",
      "Failed credential plugin calls",
      ["plugin_name"],
    ),
  };
}
