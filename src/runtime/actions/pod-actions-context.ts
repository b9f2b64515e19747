import type { Container } from "../../api/container.ts";
import type { Cause } from "../../journal/entry.ts";
import type { PodResources } from "../../resources/resource-checkpoint.ts";
import type { Unhealthy } from "./container-decision.ts";
import type { ContainerStatus } from "../status/pod-status.ts";

/** The inputs of the decision beside the spec and the runtime's state. Plain read-only facts. */
export interface PodActionsContext {
  /** Monotonic milliseconds. */
  readonly nowMs: number;
  /** Containers that an operation is starting or stopping: excluded from decisions. */
  readonly busy: ReadonlySet<string>;
  /** End of the crash-loop back-off that follows this exit, in monotonic milliseconds; undefined: none. */
  readonly backOffEndsAt: (container: Container, exited: ContainerStatus) => number | undefined;
  /** When a failed start may be retried, in monotonic milliseconds; undefined: none failed. */
  readonly retryAt: (container: Container) => number | undefined;
  /** The same for the sandbox, or for a failed restart of all containers. */
  readonly sandboxRetryAt: number | undefined;
  /** Monotonic milliseconds before which no sandbox replaces one that was lost soon after its creation. */
  readonly sandboxBackOffEndsAt: number | undefined;
  /** The journal entry of a container's last observed change. */
  readonly evidence: (container: ContainerStatus) => number | undefined;
  /** Why podwright stopped this instance to restart it; undefined when it exited otherwise. */
  readonly restartCause: (exited: ContainerStatus) => Cause | undefined;
  /** True when the pod restart that this exit requested has begun: some containers may already be removed. */
  readonly startsOver: (exited: ContainerStatus) => boolean;
  /** Set when the container's liveness or startup probe has failed: it must be stopped. */
  readonly unhealthy: (container: Container, running: ContainerStatus) => Unhealthy | undefined;
  /** True when the container has no startup probe, or it has succeeded. */
  readonly started: (container: Container, running: ContainerStatus) => boolean;
  /** Undefined: the containers' actual resources are unknown, so nothing is resized. */
  readonly resize?: ResizeFacts | undefined;
}

/** Of a pod of which nothing exists yet. */
export const firstStart: PodActionsContext = {
  nowMs: 0,
  busy: new Set(),
  backOffEndsAt: () => undefined,
  retryAt: () => undefined,
  sandboxRetryAt: undefined,
  sandboxBackOffEndsAt: undefined,
  evidence: () => undefined,
  restartCause: () => undefined,
  startsOver: () => false,
  unhealthy: () => undefined,
  started: () => true,
};

/** The resize state of a pod, whose spec has the allocated resources. */
export interface ResizeFacts {
  /** The actuated resources of its containers and of the pod; undefined: not recorded. */
  readonly actuated: PodResources | undefined;
  /** A resize is in progress. */
  readonly underWay: boolean;
  /** Monotonic ms before which a failed resize is not retried. */
  readonly retryAtMs: number | undefined;
  readonly cause: Cause;
}
