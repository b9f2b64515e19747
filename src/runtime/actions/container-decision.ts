import type { Container } from "../../api/container.ts";
import type { ContainerId } from "../../base/ids.ts";
import type { Cause } from "../../journal/entry.ts";
import type { ContainerStatus } from "../status/pod-status.ts";

/** init: runs to completion before the next. sidecar: an init container that keeps running (restartPolicy Always). */
export type ContainerKind = "init" | "sidecar" | "regular" | "ephemeral";

/** A running container to stop while its pod keeps running. */
export interface ContainerToKill {
  readonly container: ContainerStatus;
  readonly cause: Cause;
  /** Grace period of the failed probe in seconds; undefined: the pod's applies. */
  readonly graceSeconds?: number;
  /** Set when it is restarted afterwards whatever its exit code: `PodActionsContext.restartCause`. */
  readonly restarts?: boolean;
  /** Upstream's text of the Event, which tools match. */
  readonly eventMessage: string;
}

export interface ContainerToStart {
  readonly container: Container;
  readonly kind: ContainerKind;
  /** The restart count of the new instance: the `attempt` of its CRI metadata. */
  readonly attempt: number;
  /** True when an instance was started in the sandbox before: a restart waits for no sibling. */
  readonly restart: boolean;
  /** An instance that was created but never started: removed first, to free its attempt number. */
  readonly leftover: ContainerStatus | undefined;
  /** Ephemeral containers: the target whose process namespace is shared; without an ID it is not running. */
  readonly target?: { readonly name: string; readonly id: ContainerId | undefined };
  readonly cause: Cause;
}

/** A container whose start has to wait. */
export interface ContainerWait {
  readonly container: Container;
  /** The instance whose crash-loop back-off applies; undefined for a retry of a failed start or pod restart. */
  readonly exited: ContainerStatus | undefined;
  /** Monotonic milliseconds. */
  readonly untilMs: number;
  readonly cause: Cause;
}

/** The effect of a failed probe on a running container. */
export interface Unhealthy {
  readonly cause: Cause;
  /** The probe's terminationGracePeriodSeconds. */
  readonly graceSeconds?: number;
}

/** The decision for one container: any of the three, or nothing. */
export interface ContainerDecision {
  readonly kill?: ContainerToKill;
  readonly start?: ContainerToStart;
  readonly wait?: ContainerWait;
}
