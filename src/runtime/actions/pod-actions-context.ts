import type { Container } from "../../api/container.ts";
import type { Cause } from "../../journal/entry.ts";
import type { PodResources } from "../../resources/resource-checkpoint.ts";
import type { Unhealthy } from "./container-decision.ts";
import type { ContainerStatus } from "../status/pod-status.ts";

/** What the decision depends on beside the spec and the runtime's state. Plain facts, read only. */
export interface PodActionsContext {
  /** Monotonic milliseconds. */
  readonly nowMs: number;
  /** Containers that an operation is starting or stopping at this moment: nothing is decided about them. */
  readonly busy: ReadonlySet<string>;
  /** End of the crash-loop back-off that follows this exit, in monotonic milliseconds; undefined: none. */
  readonly backOffEndsAt: (container: Container, exited: ContainerStatus) => number | undefined;
  /** When a start that failed may be tried again, in monotonic milliseconds; undefined: none failed. */
  readonly retryAt: (container: Container) => number | undefined;
  /** The same for the sandbox. */
  readonly sandboxRetryAt: number | undefined;
  /** The journal entry in which a container's last change was seen. */
  readonly evidence: (container: ContainerStatus) => number | undefined;
  /** Why podwright stopped this instance in order to restart it; undefined when it ended otherwise. */
  readonly restartCause: (exited: ContainerStatus) => Cause | undefined;
  /** True when the start-over of the whole pod for which this exit asks has begun: some of its containers may be gone. */
  readonly startsOver: (exited: ContainerStatus) => boolean;
  /** Set when the container's liveness or startup probe has failed: it has to be stopped. */
  readonly unhealthy: (container: Container, running: ContainerStatus) => Unhealthy | undefined;
  /** True when the container has no startup probe or that has succeeded. */
  readonly started: (container: Container, running: ContainerStatus) => boolean;
  /** Undefined: nobody knows what its containers were given, so that nothing is resized. */
  readonly resize?: ResizeFacts | undefined;
}

/** What is known of a pod's resources beside its spec, which holds what it was granted. */
export interface ResizeFacts {
  /** What its containers and the pod as a whole were last given; undefined: nobody recorded it. */
  readonly actuated: PodResources | undefined;
  /** A resize is being carried out at this moment. */
  readonly underWay: boolean;
  /** Monotonic ms before which a resize that failed is not tried again. */
  readonly retryAtMs: number | undefined;
  readonly cause: Cause;
}
