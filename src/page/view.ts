/**
 * The data of the node page, as JSON. Built field by field from what may be shown: no environment, no command lines, no
 * contents of ConfigMaps or Secrets. Times are wall-clock milliseconds. The page's own sources use these types.
 */

/** How a pod fares, for its colour and the filter. */
export type Mood = "failed" | "ended" | "stopping" | "good" | "trouble" | "starting";

export interface ProbeView {
  readonly type: "startup" | "liveness" | "readiness";
  /** `GET :8080/healthz` */
  readonly what: string;
  readonly periodSeconds: number;
  /** The verdict that counts. unknown: none yet. */
  readonly result: "success" | "failure" | "unknown";
  /** The last probe of this run. */
  readonly last?: {
    readonly kind: "success" | "warning" | "failure" | "error";
    readonly text: string;
    readonly at: number;
  };
}

export interface ContainerDetail {
  readonly name: string;
  readonly kind: "container" | "init" | "sidecar" | "ephemeral";
  readonly image: string;
  readonly state: "waiting" | "running" | "terminated";
  readonly reason: string;
  readonly message: string;
  readonly ready: boolean;
  readonly restarts: number;
  readonly startedAt?: number;
  readonly finishedAt?: number;
  readonly exitCode?: number;
  /** `8080/TCP`, `8080→80/TCP` with a host port. */
  readonly ports: readonly string[];
  /** `cpu 100m–500m`, `memory 64Mi–`: request and limit, either may be missing. */
  readonly resources: readonly string[];
  readonly probes: readonly ProbeView[];
}

export interface ConditionView {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly since?: number;
}

export interface PodDetail {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** `file`, `http`, `run` or `api`. */
  readonly source: string;
  /** As `podwright ps` shows it: `Running`, `CrashLoopBackOff` … */
  readonly word: string;
  readonly mood: Mood;
  readonly phase: string;
  readonly reason: string;
  readonly message: string;
  /** Of the containers that are to stay. */
  readonly readyContainers: number;
  readonly lastingContainers: number;
  readonly restarts: number;
  readonly createdAt: number;
  readonly ips: readonly string[];
  readonly hostNetwork: boolean;
  readonly qos: string;
  readonly priority?: string;
  readonly serviceAccount?: string;
  readonly resize?: string;
  /** While it is being stopped: when SIGKILL is due. */
  readonly killAt?: number;
  readonly conditions: readonly ConditionView[];
  readonly containers: readonly ContainerDetail[];
  /** Changes with each journal entry about the pod: time to ask for its life again. */
  readonly entries: number;
}

export interface NodeView {
  readonly name: string;
  readonly version: string;
  readonly runtime: string;
  readonly startedAt: number;
  readonly healthy: boolean;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[];
}

/** What the node has, for gauges; what is not known is left out. */
export interface CapacityView {
  readonly cpuCores?: number;
  readonly memoryBytes?: number;
  readonly diskBytes?: number;
  readonly maxPods?: number;
}

/** One reading. Null: not known at that moment. */
export interface NodeReading {
  readonly time: number;
  /** Processor time used since the reading before, in cores. */
  readonly cpuCores: number | null;
  readonly memoryBytes: number | null;
  readonly diskBytes: number | null;
  readonly pods: number;
}

/** Of one pod: CPU in cores and the working set in bytes, or null each. */
export type PodReading = readonly [cpuCores: number | null, memoryBytes: number | null];

/** The readings kept, oldest first. */
export interface HistoryView {
  readonly capacity: CapacityView;
  readonly node: readonly NodeReading[];
  /** By UID, fewer readings than of the node, ending with the same one; without times. */
  readonly pods: Readonly<Record<string, readonly PodReading[]>>;
}

/** The first event of a stream: everything. */
export interface HelloEvent {
  readonly now: number;
  readonly node: NodeView;
  readonly pods: readonly PodDetail[];
  readonly history: HistoryView;
}

/** What has changed since the event before. */
export interface ChangeEvent {
  readonly now: number;
  readonly node?: NodeView;
  readonly pods?: readonly PodDetail[];
  /** UIDs. */
  readonly gone?: readonly string[];
}

export interface GaugesEvent {
  readonly now: number;
  readonly capacity: CapacityView;
  readonly node: NodeReading;
  readonly pods: Readonly<Record<string, PodReading>>;
}

export type Outcome = "done" | "failed" | "unknown" | "running" | "interrupted";

/** One thing that happened, in words. */
export interface LifeLine {
  readonly seq: number;
  readonly time: number;
  /** Since the pod's first entry. */
  readonly sinceMs: number;
  readonly kind: "input" | "observation" | "decision" | "action" | "outcome" | "note";
  readonly container?: string;
  /** `ContainerDied` */
  readonly what: string;
  /** With how it ended. */
  readonly text: string;
  readonly outcome?: Outcome;
  /** Nearest first. */
  readonly because: readonly string[];
}

/** The explanation of the state of the pod itself or of one container. */
export interface SubjectView {
  readonly container?: string;
  readonly last: { readonly text: string; readonly time: number; readonly outcome?: Outcome };
  readonly after?: { readonly text: string; readonly time: number };
  readonly because: readonly { readonly text: string; readonly time?: number }[];
  readonly next?: { readonly text: string; readonly until: number };
}

export interface PhaseView {
  readonly kind: string;
  readonly label: string;
  readonly container?: string;
  readonly offsetMs: number;
  readonly durationMs: number;
  readonly queuedMs?: number;
  readonly result: Outcome;
  /** On the chain that delayed the start. */
  readonly critical: boolean;
}

/** A pod's life, as in `podwright why`, `timeline` and `blame`. */
export interface LifeView {
  readonly uid: string;
  readonly subjects: readonly SubjectView[];
  /** Oldest first. */
  readonly lines: readonly LifeLine[];
  /** Earlier ones that are left out. */
  readonly omitted: number;
  readonly startUp: {
    readonly outcome: "ready" | "ended" | "starting";
    readonly totalMs: number;
    readonly phases: readonly PhaseView[];
  };
  /** The journal does not have the pod's beginning: the start-up is a later one. */
  readonly truncated?: true;
}

/** In what order pods would be evicted, as in `podwright evict --preview`. */
export interface EvictionView {
  /** `memory.available` */
  readonly signal: string;
  readonly standing: string;
  /** In eviction order. */
  readonly pods: readonly {
    readonly namespace: string;
    readonly name: string;
    /** What decides its rank. */
    readonly place: string;
    /** False for a critical pod. */
    readonly evictable: boolean;
  }[];
}

/** What garbage collection would remove, as in `podwright gc --preview`. */
export interface GarbageView {
  readonly items: readonly {
    readonly kind: "image" | "container" | "sandbox";
    readonly name: string;
    /** `default/web`; omitted for an image. */
    readonly pod?: string;
    readonly bytes?: number;
    /** Why it stays; omitted: it would be removed. */
    readonly stays?: string;
  }[];
  /** Why no image would be removed at all. */
  readonly imagesStay?: string;
}
