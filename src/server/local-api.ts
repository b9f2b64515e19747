import type { ConfigMapManifest, PodManifest, SecretManifest } from "../api/pod.ts";
import type { StorageManifest } from "../api/storage-manifest.ts";
import type { PodUid } from "../base/ids.ts";
import type { JournalEntry, PodRef } from "../journal/entry.ts";

/** Objects of one `podwright run`, decoded and validated by the caller and again by the engine. */
export interface ApplyRequest {
  readonly pods: readonly PodManifest[];
  readonly configMaps: readonly ConfigMapManifest[];
  readonly secrets: readonly SecretManifest[];
  /** Claims, and what is behind them. */
  readonly storage?: readonly StorageManifest[];
  /** Unchanged pods that have run to their end run again. */
  readonly runsAgain?: boolean;
}

export interface AppliedPod extends PodRef {
  /**
   * replaced: another manifest ran under this name; that pod ends before this one starts. updated: the running pod
   * continues with changed content.
   */
  readonly change: "added" | "unchanged" | "updated" | "replaced";
}

/** An ephemeral container to run. */
export interface DebugRequest {
  /** Default: the image of `target`, or of the pod's first container. */
  readonly image?: string;
  /** The container whose processes it sees. */
  readonly target?: string;
  /** Empty: the image's own command. */
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
  /** The runtime's ID; empty before the first start. */
  readonly id: string;
  readonly image: string;
  readonly state: "waiting" | "running" | "terminated";
  /** Waiting or terminated: `CrashLoopBackOff`, `ImagePullBackOff`, `Completed`, `Error` … */
  readonly reason: string;
  readonly message: string;
  readonly exitCode: number | undefined;
  readonly ready: boolean;
  readonly restartCount: number;
  /** Wall clock ms; undefined before the start. */
  readonly startedAt: number | undefined;
  readonly finishedAt: number | undefined;
  /** Absolute path of the current log, and of the previous instance's. */
  readonly logPath: string;
  readonly previousLogPath: string | undefined;
}

export interface InitContainerView extends ContainerView {
  /** It runs beside the regular containers (restartPolicy Always) and counts as one of them. */
  readonly sidecar: boolean;
  /** It has completed, or, for a sidecar, started. */
  readonly done: boolean;
}

/** A pod as the engine knows it: a row of `podwright ps`. */
export interface PodView extends PodRef {
  /** `file`, `http`, `run` or `api`. */
  readonly source: string;
  /** The worker's state: syncing, terminating (being stopped) or terminated. */
  readonly state: "syncing" | "terminating" | "terminated";
  readonly phase: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  /**
   * Pod reason (`Evicted`, `DeadlineExceeded` …); empty when none. Of a pod that has succeeded although the node ended
   * it: why it did, which its status does not say.
   */
  readonly reason: string;
  readonly message: string;
  readonly ready: boolean;
  /** Wall clock ms since when it is ready; omitted while it is not. */
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
  /** Wall clock ms at which this engine or an earlier one first saw the pod. */
  readonly createdAt: number;
  readonly containers: readonly ContainerView[];
  /** Init containers and sidecars, in the order of the spec. */
  readonly initContainers: readonly InitContainerView[];
  readonly ephemeralContainers: readonly ContainerView[];
  /** The container in the annotation `kubectl.kubernetes.io/default-container`, even if it does not exist. */
  readonly defaultContainer?: string | undefined;
  /** Of a pod that is deleted at the API server; omitted for others. */
  readonly finalizers?: readonly string[] | undefined;
  readonly logDirectory: string;
  /** The claims of its volumes, by the volumes' names; omitted: none. */
  readonly claims?: Readonly<Record<string, string>> | undefined;
  /** Of a pod that has stopped and still has volumes: the one that it waits for, and why, if known. */
  readonly holdout?: string | undefined;
  /** The CSI drivers without which that wait does not end; omitted: none. */
  readonly awayDrivers?: readonly AwayDriver[] | undefined;
  /** While terminating: wall clock ms at which SIGKILL is due. */
  readonly killAt: number | undefined;
  /** Of a CSI driver: the running pods whose volumes only drivers can release. */
  readonly serves?: readonly PodRef[] | undefined;
  /** Ignored manifests of the same name. */
  readonly ignoredManifests: readonly string[];
  /** Set while the pod's resources differ from its manifest. */
  readonly resize?: ResizeState | undefined;
}

/** A CSI driver that a pod waits for. */
export interface AwayDriver {
  readonly name: string;
  /** Wall clock ms since when it is away, or since when that is known. */
  readonly since: number;
  /** It is there, and does not answer. */
  readonly isRegistered: boolean;
}

export interface ResizeState {
  /** Deferred: not now, mostly for lack of room. Infeasible: the pod cannot be resized so. InProgress, Error: being applied. */
  readonly state: "Deferred" | "Infeasible" | "InProgress" | "Error";
  readonly message: string;
}

/** What the next sync of a pod would do, and why. */
export interface PodPlan extends PodRef {
  /** The effect of applying the manifests; undefined: they do not contain the pod. */
  readonly change: AppliedPod["change"] | undefined;
  /** In order; empty when there is nothing to do. */
  readonly steps: readonly PlanStep[];
  /** Waits before a further step, with their end (wall clock ms) if known. */
  readonly waits: readonly (PlanStep & { readonly until: number | undefined })[];
  /** Operations in progress; nothing else is decided about their part of the pod. */
  readonly underWay: readonly string[];
  /** Why there is nothing to do, unless everything runs as it should; otherwise empty. */
  readonly note: string;
}

export interface PlanStep {
  /** `start container web, attempt 0`. */
  readonly text: string;
  /** Nearest first. */
  readonly because: readonly string[];
}

/** The effect of applying manifests on an object besides pods; pods that refer to it are synced when it changes. */
export interface ObjectPlan {
  readonly kind: "ConfigMap" | "Secret" | StorageManifest["kind"];
  /** Empty: it is in none. */
  readonly namespace: string;
  readonly name: string;
  readonly change: AppliedPod["change"];
  /** Of a claim: what it is, or would be, bound to. */
  readonly detail?: string;
}

export interface Plan {
  readonly pods: readonly PodPlan[];
  readonly objects: readonly ObjectPlan[];
}

export interface EvictionPreview {
  /** `memory.available` */
  readonly signal: string;
  /** For example `memory.available is 5Gi of 8Gi; threshold 100Mi`. */
  readonly standing: string;
  /** Exact, in bytes or as a count; undefined: unknown. */
  readonly available?: number | undefined;
  /** In eviction order. */
  readonly pods: readonly EvictionCandidate[];
}

export interface EvictionCandidate extends PodRef {
  /** What decides its rank. */
  readonly place: string;
  /** False for a critical pod. */
  readonly evictable: boolean;
}

export interface HealthCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  /** It works, with a problem. */
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
  /** The file that decisions are recorded to; omitted without recording. */
  readonly record?: string;
  readonly startedAt: number;
  /** Sequence number of the newest journal entry, so that a client can follow later ones; 0 without entries. */
  readonly journalSeq: number;
  /** True once the pods of earlier runs are listed too: until then, an unlisted pod may be running. */
  readonly knowsAllPods: boolean;
  /** UIDs of unlisted pods that run or should run; omitted until the runtime has been listed. */
  readonly unlisted?: readonly PodUid[];
  /** One for each subsystem: its last success and the oldest outstanding call. */
  readonly checks: readonly HealthCheck[];
}

/** An image, container or sandbox that may be garbage. */
export interface GarbageItem {
  readonly kind: "image" | "container" | "sandbox";
  /** The runtime's ID. */
  readonly id: string;
  /** `docker.io/library/busybox:1.36`, `container web`. */
  readonly name: string;
  /** `default/web`; undefined for an image. */
  readonly pod?: string | undefined;
  /** Undefined: not reported by the runtime. */
  readonly bytes?: number | undefined;
  /** Why it stays; undefined: it is removed. */
  readonly stays?: string | undefined;
}

/** What a confirmation of evictions did. */
export interface EvictionConfirmation {
  /** Evictions by changed settings were waiting for it. */
  readonly waited: boolean;
}

/** What garbage collection would remove, or has removed. */
export interface GarbageReport {
  readonly items: readonly GarbageItem[];
  /** Why no image is removed at all: this node does not collect images. */
  readonly imagesStay?: string | undefined;
  /** Increase of free space on the image file system by all that was removed; undefined for a preview. */
  readonly freedBytes?: number | undefined;
  /** What could not be removed, and why. */
  readonly failures: readonly string[];
}

/** A claim of `podwright run`. */
export interface ClaimView {
  readonly namespace: string;
  readonly name: string;
  readonly phase: "Bound" | "Pending";
  /** Why it is not bound; otherwise empty. */
  readonly message: string;
  /** As written, `1Gi`. */
  readonly requested: string;
  readonly accessModes: readonly string[];
  /** Name of its PersistentVolume; undefined while it is not bound. */
  readonly volume?: string | undefined;
  /** The directory of its data; undefined while it is not bound, and when a driver has it. */
  readonly path?: string | undefined;
  /** Where its data is, in words; undefined while it is not bound. */
  readonly where?: string | undefined;
  /** The data is in the state directory, and goes with the claim. */
  readonly isOwn: boolean;
  /** Pods that refer to it, or reach its directory by another volume; also while they are being stopped. */
  readonly usedBy: readonly PodRef[];
  /** It belongs to an ephemeral volume of this pod, and goes with it. */
  readonly owner?: string | undefined;
  /** The objects, as an API server would have them. */
  readonly objects: readonly unknown[];
}

/** A PersistentVolume of `podwright run` without a bound claim. */
export interface FreeVolumeView {
  readonly name: string;
  /** As written, `1Gi`. */
  readonly capacity: string;
  readonly accessModes: readonly string[];
  /** Empty: none. */
  readonly storageClass: string;
  /** The claim that it is reserved for, as `namespace/name`. */
  readonly keptFor?: string | undefined;
  /** The location of its data, in words. */
  readonly where: string;
}

/** What the removal of a claim did. */
export interface ClaimRemoval {
  readonly namespace: string;
  readonly name: string;
  /** Where data was left, because it is not podwright's; undefined: it is removed. */
  readonly left?: string | undefined;
}

/** A pod as a person names it: `name`, `namespace/name` or a UID. */
export type PodSelector = string;

/**
 * The commands' interface to a running engine, over its Unix socket. Methods reject with `PodwrightError` (bad input
 * when a selector matches no pod or several).
 */
export interface LocalApi {
  health(): Health;
  apply(request: ApplyRequest): Promise<readonly AppliedPod[]>;
  /** The next steps of each pod, with manifests: after applying them. Does nothing. */
  plan(request: ApplyRequest | undefined): Promise<Plan>;
  /** Pods, by namespace and name; removed ones are not listed. */
  pods(): readonly PodView[];
  pod(selector: PodSelector): PodView;
  /**
   * Removes the pod from the `run` source, which stops it; resolves once that is recorded, while the stop continues. A
   * second call with a smaller grace period shortens the first. Pods of other sources are rejected with the remedy.
   */
  stop(selector: PodSelector, graceSeconds: number | undefined): Promise<PodView>;
  /** The claims of `podwright run`, by namespace and name. */
  claims(): readonly ClaimView[];
  /** The PersistentVolumes of `podwright run` without a bound claim, sorted by name. */
  freeVolumes(): readonly FreeVolumeView[];
  /** Removes a claim with its data; rejects while a pod refers to it. */
  removeClaim(namespace: string, name: string): Promise<ClaimRemoval>;
  /** Ends the pod's back-offs, so that everything is retried at once; returns once that is recorded. */
  retry(selector: PodSelector): PodView;
  /** What garbage collection would remove. Removes nothing. */
  previewGarbage(signal: AbortSignal): Promise<GarbageReport>;
  /** Removes unused images and dead containers. */
  collectGarbage(signal: AbortSignal): Promise<GarbageReport>;
  /** Adds an ephemeral container to a pod of the `run` source; resolves once that is recorded. */
  debug(selector: PodSelector, request: DebugRequest): Promise<DebugContainer>;
  /** Resolves a selector for removed pods that are still in the journal. */
  podRefs(selector: PodSelector): readonly PodRef[];
  entries(filter: { readonly uid?: PodUid; readonly sinceSeq?: number }): readonly JournalEntry[];
  /** Entries from `sinceSeq` on, then new ones, until the signal aborts. */
  follow(
    filter: { readonly uid?: PodUid; readonly sinceSeq?: number },
    signal: AbortSignal,
  ): AsyncIterable<JournalEntry>;
  /** The eviction order for a signal, by current usage. @param signal undefined: the most urgent one */
  evictionPreview(signal: string | undefined): Promise<EvictionPreview>;
  /** Allows evictions by changed settings. */
  confirmEvictions(): Promise<EvictionConfirmation>;
  /** Ends the engine process; pods keep running (`keep`) or are stopped first. */
  shutdown(mode: "keep" | "stop"): Promise<void>;
}
