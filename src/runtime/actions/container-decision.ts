import type { Container } from "../../api/container.ts";
import type { ContainerId } from "../../base/ids.ts";
import type { Cause } from "../../journal/entry.ts";
import type { ContainerStatus } from "../status/pod-status.ts";

/** init: runs to its end before the next. sidecar: an init container that stays (restartPolicy Always). */
export type ContainerKind = "init" | "sidecar" | "regular" | "ephemeral";

/** A running container that has to stop although its pod goes on. */
export interface ContainerToKill {
  readonly container: ContainerStatus;
  readonly cause: Cause;
  /** The grace of the probe that failed, in seconds; without one the pod's counts. */
  readonly graceSeconds?: number;
  /** Set when it is to run again afterwards whatever its exit code: `PodActionsContext.restartCause`. */
  readonly restarts?: boolean;
  /** Upstream's words for the Event, which tools look for. */
  readonly eventMessage: string;
}

export interface ContainerToStart {
  readonly container: Container;
  readonly kind: ContainerKind;
  /** The restart count of the new instance: the `attempt` of its CRI metadata. */
  readonly attempt: number;
  /** True when an instance was started before: a restart waits for no sibling. */
  readonly restart: boolean;
  /** An instance that was created and never started: it is removed first, so that its attempt can be used again. */
  readonly leftover: ContainerStatus | undefined;
  /** Ephemeral containers: the container whose processes it sees; without an id it does not run. */
  readonly target?: { readonly name: string; readonly id: ContainerId | undefined };
  readonly cause: Cause;
}

/** A container that would start now if it had not to wait. */
export interface ContainerWait {
  readonly container: Container;
  /** The instance whose crash-loop back-off it is; undefined when the last start failed and is tried again later. */
  readonly exited: ContainerStatus | undefined;
  /** Monotonic milliseconds. */
  readonly untilMs: number;
  readonly cause: Cause;
}

/** What a failed probe says of a running container. */
export interface Unhealthy {
  readonly cause: Cause;
  /** The probe's terminationGracePeriodSeconds. */
  readonly graceSeconds?: number;
}

/** What is to be done with one container: any of the three, or nothing. */
export interface ContainerDecision {
  readonly kill?: ContainerToKill;
  readonly start?: ContainerToStart;
  readonly wait?: ContainerWait;
}
