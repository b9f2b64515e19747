import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";

/** Where pods come from: staticPodPath, staticPodURL, the API server, `podwright run`. */
export type SourceName = "file" | "http" | "api" | "run";

/** A pod of a source, and the place of its manifest, for messages. */
export interface SourcedPod {
  readonly pod: Pod;
  readonly place: string;
  /** What its manifest says that is allowed and hardly meant. */
  readonly warnings?: readonly string[];
}

/** The present state of a source. */
export interface SourceState {
  readonly pods: readonly SourcedPod[];
  /** False when something of the source is unreadable: then it cannot determine orphans. */
  readonly complete: boolean;
  /** Seconds for the stop of pods that were in the state before, by UID; otherwise their own grace. */
  readonly graceSeconds?: ReadonlyMap<PodUid, number>;
}

/** One change of what a source has: many pods are not gone through for each. */
export interface SourceChange {
  /** What it no longer has. */
  readonly left: SourcedPod | undefined;
  /** What it has now, in place of what left or beside all others. */
  readonly came: SourcedPod | undefined;
  /** As in {@link SourceState}. */
  readonly complete: boolean;
}

/** What sources need of their surroundings. */
export interface SourceDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly nodeName: string;
  /** Receives a source's pods, at each change and once in the beginning. */
  readonly deliver: (state: SourceState) => void;
}

/** One change of what the node shall run. */
export interface PodUpdate {
  /** update: the same UID with other content. */
  readonly op: "add" | "update" | "remove";
  readonly source: SourceName;
  readonly pod: Pod;
  /** Points at the journal's entry of the change. */
  readonly cause: Cause;
  /** remove: a grace other than the pod's own. */
  readonly graceSeconds?: number;
}
