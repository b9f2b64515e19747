import type { ConfigMapManifest, PodManifest, SecretManifest } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { JournalEntry, PodRef } from "../journal/entry.ts";

/** Objects of one `podwright run`, decoded and validated by the caller, validated again by the engine. */
export interface ApplyRequest {
  readonly pods: readonly PodManifest[];
  readonly configMaps: readonly ConfigMapManifest[];
  readonly secrets: readonly SecretManifest[];
}

export interface AppliedPod extends PodRef {
  /**
   * replaced: another manifest ran under this name; that pod ends before this one starts. updated: the pod that runs
   * goes on with other content.
   */
  readonly change: "added" | "unchanged" | "updated" | "replaced";
}

/** What to run in an ephemeral container. */
export interface DebugRequest {
  /** The image of `target`, or of the pod's first container, unless given. */
  readonly image?: string;
  /** The container whose processes it is to see. */
  readonly target?: string;
  /** Empty: what the image runs. */
  readonly command: readonly string[];
}

export interface DebugContainer {
  readonly pod: PodRef;
  /** Name of the new ephemeral container. */
  readonly container: string;
}

/** One container of a {@link PodView}, newest instance. */
export interface ContainerView {
  readonly name: string;
  /** The runtime's id; empty before the first start. */
  readonly id: string;
  readonly image: string;
  readonly state: "waiting" | "running" | "terminated";
  /** Waiting or terminated: `CrashLoopBackOff`, `ImagePullBackOff`, `Completed`, `Error` … */
  readonly reason: string;
  readonly message: string;
  readonly exitCode: number | undefined;
  readonly ready: boolean;
  readonly restartCount: number;
  /** Wall clock ms; undefined before. */
  readonly startedAt: number | undefined;
  readonly finishedAt: number | undefined;
  /** Absolute path of the newest log, and of the instance before it. */
  readonly logPath: string;
  readonly previousLogPath: string | undefined;
}

export interface InitContainerView extends ContainerView {
  /** It stays beside the regular containers (restartPolicy Always) and counts as one of them. */
  readonly sidecar: boolean;
  /** It has done its part: ended well or, a sidecar, started. */
  readonly done: boolean;
}

/** What the engine knows of one pod: the rows of `podwright ps`. */
export interface PodView extends PodRef {
  /** `file`, `http`, `run` or `api`. */
  readonly source: string;
  /** The worker's state: syncing, terminating (being stopped) or terminated. */
  readonly state: "syncing" | "terminating" | "terminated";
  readonly phase: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  /** Pod reason (`Evicted`, `DeadlineExceeded` …); empty when none. */
  readonly reason: string;
  readonly message: string;
  readonly ready: boolean;
  /** Wall clock ms since which it is ready; left out while it is not. */
  readonly readySince?: number | undefined;
  readonly ips: readonly string[];
  readonly hostNetwork: boolean;
  readonly hostPorts: readonly {
    readonly hostIP: string;
    readonly hostPort: number;
    readonly containerPort: number;
    readonly protocol: string;
  }[];
  readonly node: string;
  /** Wall clock ms at which this engine or the one before it first saw the pod. */
  readonly createdAt: number;
  readonly containers: readonly ContainerView[];
  /** Init containers and sidecars, in the order of the spec. */
  readonly initContainers: readonly InitContainerView[];
  readonly ephemeralContainers: readonly ContainerView[];
  /** What the annotation `kubectl.kubernetes.io/default-container` names, whether or not there is such a container. */
  readonly defaultContainer?: string | undefined;
  readonly logDirectory: string;
  /** While terminating: wall clock ms at which SIGKILL is due. */
  readonly killAt: number | undefined;
  /** Manifests of the same name that are ignored. */
  readonly ignoredManifests: readonly string[];
  /** Set while the pod does not have the resources that its manifest asks for. */
  readonly resize?: ResizeState | undefined;
}

export interface ResizeState {
  /** Deferred: the node has no room now. Infeasible: it never has. InProgress, Error: being carried out, and how. */
  readonly state: "Deferred" | "Infeasible" | "InProgress" | "Error";
  readonly message: string;
}

/** What the next sync of a pod would do, and why. */
export interface PodPlan extends PodRef {
  /** What applying the manifests would do with it; undefined: they do not name it. */
  readonly change: AppliedPod["change"] | undefined;
  /** In order. Empty when nothing is to be done. */
  readonly steps: readonly PlanStep[];
  /** Waits before something else is done, with their end (wall clock ms) where that is known. */
  readonly waits: readonly (PlanStep & { readonly until: number | undefined })[];
  /** What is being done at this moment; nothing else is decided about that part of the pod. */
  readonly underWay: readonly string[];
  /** Why there is nothing to do, where it is not that all runs as it should; empty otherwise. */
  readonly note: string;
}

export interface PlanStep {
  /** `start container web, attempt 0`. */
  readonly text: string;
  /** Nearest first. */
  readonly because: readonly string[];
}

/** What applying manifests would do with a ConfigMap or Secret; pods that refer to it are looked at when it changes. */
export interface ObjectPlan {
  readonly kind: "ConfigMap" | "Secret";
  readonly namespace: string;
  readonly name: string;
  readonly change: AppliedPod["change"];
}

export interface Plan {
  readonly pods: readonly PodPlan[];
  readonly objects: readonly ObjectPlan[];
}

/** In what order pods would be evicted. */
export interface EvictionPreview {
  /** `memory.available` */
  readonly signal: string;
  /** How the node stands: `memory.available is 5Gi of 8Gi; threshold 100Mi`. */
  readonly standing: string;
  /** The first goes first. */
  readonly pods: readonly EvictionCandidate[];
}

export interface EvictionCandidate extends PodRef {
  /** What decides about its place. */
  readonly place: string;
  /** False of a critical pod. */
  readonly evictable: boolean;
}

export interface HealthCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  /** It works, and is not as it should be. */
  readonly warning?: boolean;
  readonly remedy?: string;
}

export interface Health {
  readonly healthy: boolean;
  readonly version: string;
  readonly pid: number;
  /** `containerd 2.1.9` */
  readonly runtime: string;
  readonly runtimeEndpoint: string;
  /** The file to which decisions are recorded; left out when they are not. */
  readonly record?: string;
  readonly startedAt: number;
  /** Sequence number of the newest journal entry, so that a client can follow what comes after; 0 when there is none. */
  readonly journalSeq: number;
  /** True once the pods of earlier runs are listed too: before that, an unlisted pod may be running. */
  readonly knowsAllPods: boolean;
  /** One line for each subsystem: last success and the oldest outstanding call. */
  readonly checks: readonly HealthCheck[];
}

/** An image, container or sandbox that may be garbage. */
export interface GarbageItem {
  readonly kind: "image" | "container" | "sandbox";
  /** The runtime's. */
  readonly id: string;
  /** `docker.io/library/busybox:1.36`, `container web`. */
  readonly name: string;
  /** `default/web`; undefined of an image. */
  readonly pod?: string | undefined;
  /** Undefined: the runtime does not say. */
  readonly bytes?: number | undefined;
  /** Why it stays; undefined: it goes. */
  readonly stays?: string | undefined;
}

/** What a collection of garbage would remove, or has removed. */
export interface GarbageReport {
  readonly items: readonly GarbageItem[];
  /** Why no image goes, whatever it is: this node collects none. */
  readonly imagesStay?: string | undefined;
  /** By what the image file system has more of since; undefined of a preview. */
  readonly freedBytes?: number | undefined;
  /** What could not be removed, and why. */
  readonly failures: readonly string[];
}

/** A pod named by a person: `name`, `namespace/name` or a UID. */
export type PodSelector = string;

/**
 * What the command line can ask of a running engine, over its Unix socket. Methods reject with `PodwrightError`
 * (bad input when a selector names no pod or several).
 */
export interface LocalApi {
  health(): Health;
  apply(request: ApplyRequest): Promise<readonly AppliedPod[]>;
  /** What would be done next for each pod, with manifests: if they were applied. Does nothing. */
  plan(request: ApplyRequest | undefined): Promise<Plan>;
  /** Pods, by namespace and name; those already gone are not listed. */
  pods(): readonly PodView[];
  pod(selector: PodSelector): PodView;
  /**
   * Removes the pod from the `run` source and so stops it; resolves as soon as that is recorded, the stop goes on.
   * A second call with a smaller grace shortens the first's. Pods of other sources are refused with the remedy.
   */
  stop(selector: PodSelector, graceSeconds: number | undefined): Promise<PodView>;
  /** Ends the pod's back-offs, so that everything is retried at once; returns as soon as that is recorded. */
  retry(selector: PodSelector): PodView;
  /** What would be removed if the node had to make room. Removes nothing. */
  previewGarbage(signal: AbortSignal): Promise<GarbageReport>;
  /** Removes images and dead containers that are of no use. */
  collectGarbage(signal: AbortSignal): Promise<GarbageReport>;
  /** Adds an ephemeral container to a pod of the `run` source; resolves as soon as that is recorded. */
  debug(selector: PodSelector, request: DebugRequest): Promise<DebugContainer>;
  /** Resolves a selector for pods that are gone but still in the journal. */
  podRefs(selector: PodSelector): readonly PodRef[];
  entries(filter: { readonly uid?: PodUid; readonly sinceSeq?: number }): readonly JournalEntry[];
  /** Entries from `sinceSeq` on, then new ones as they come, until the signal aborts. */
  follow(
    filter: { readonly uid?: PodUid; readonly sinceSeq?: number },
    signal: AbortSignal,
  ): AsyncIterable<JournalEntry>;
  /** Whom the node would evict for a signal, by what pods use now. @param signal undefined: the one that is most urgent */
  evictionPreview(signal: string | undefined): Promise<EvictionPreview>;
  /** Allows evictions by thresholds that the last start did not have. */
  confirmEvictions(): Promise<void>;
  /** Ends the engine process; pods keep running (`keep`) or are stopped first. */
  shutdown(mode: "keep" | "stop"): Promise<void>;
}
