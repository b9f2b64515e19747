import type { Clock } from "../ports/clock.ts";
import type { PodRef } from "./entry.ts";

export interface ProbeName {
  readonly pod: PodRef;
  readonly container: string;
  readonly type: "liveness" | "readiness" | "startup";
}

/** Worker states that have steps. */
export type StepState = "syncing" | "terminating" | "terminated" | "finished";

/** The result of a container's request for an image; undefined fields: not determined. */
export interface AskedImage {
  /** The runtime has it. */
  present?: boolean;
  /** The registry must be contacted. */
  pulls?: boolean;
}

/** Why a pod may use a present image, or why its registry is contacted: upstream's values. */
export type AccessJudgement =
  | "credentialPolicyAllowed"
  | "credentialRecordFound"
  | "mustAuthenticate"
  /** The records or the pod's credentials are unreadable. */
  | "error";

/** Upstream's names of operations on volumes. */
export type StorageOperationName =
  | "verify_controller_attached_volume"
  | "volume_mount"
  | "map_volume"
  | "volume_apply_access_control"
  | "volume_fs_resize"
  | "volume_unmount"
  | "unmap_volume"
  | "unmount_device"
  | "unmap_device";

/** One operation on a volume. */
export interface StorageOperation {
  /** Upstream's full name: `kubernetes.io/csi:hostpath.csi.k8s.io`. */
  readonly plugin: string;
  readonly name: StorageOperationName;
  readonly failed: boolean;
  /** The volume was translated from a removed in-tree plugin. */
  readonly migrated: boolean;
  readonly durationMs: number;
}

/**
 * About a volume that one pod at a time may use, on a node with SELinux. admitted: it is mounted with a label.
 * containerError: the label of a container cannot be made. podMismatch: the containers of its pod have different ones.
 */
export type SELinuxOutcome = "admitted" | "containerError" | "podMismatch";

/** Observes what is not in the journal, for metrics. Returns immediately, throws nothing, decides nothing. */
export interface Observer {
  /** A unary CRI call has ended. @param method as CRI spells it */
  called(method: string, durationMs: number, failed: boolean): void;
  /** The runtime was listed. */
  relisted(durationMs: number): void;
  /** One pod was inspected. */
  inspected(durationMs: number): void;
  probed(probe: ProbeName, outcome: "success" | "warning" | "failure" | "error", durationMs: number): void;
  /** The probe has ended. */
  probeEnded(probe: ProbeName): void;
  /** A worker has completed a step for its pod. */
  stepped(pod: PodRef, state: StepState, durationMs: number): void;
  /** A pod starts under the UID of one that was still stopping when it arrived. */
  podReturned(isStatic: boolean): void;
  /** Leftovers of removed pods were searched. @param failed those that could not be removed */
  leftoversSwept(found: number, failed: number): void;
  /** A container requested its image, with the result. */
  imageAsked(policy: string, asked: AskedImage): void;
  /** Memory is protected by what pods of two QoS classes ask for together, bytes. */
  memoryProtected(requests: { readonly guaranteedBytes: bigint; readonly burstableBytes: bigint }): void;
  /** A volume was measured. @param source `statfs`, `du` or a driver's name */
  volumeMeasured(source: string, durationMs: number): void;
  /** An operation on a volume has ended. */
  storageOperation(operation: StorageOperation): void;
  /** A volume is mounted for its pod. @param durationMs since it was wanted, with all attempts and waits */
  volumeMounted(plugin: string, durationMs: number): void;
  /** @param driver of the volume, if it was admitted */
  seLinuxVolume(outcome: SELinuxOutcome, driver?: string): void;
  /** A pod's access to a present image was verified. */
  accessJudged(judgement: AccessJudgement): void;
}

/** Awaits and measures a worker's step, whatever its outcome. */
export async function measureStep(
  observer: Observer | undefined,
  clock: Clock,
  pod: PodRef,
  state: StepState,
  step: Promise<void>,
): Promise<void> {
  const beganMs = clock.monotonic();
  try {
    await step;
  } finally {
    observer?.stepped(pod, state, clock.monotonic() - beganMs);
  }
}
