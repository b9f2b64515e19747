import type { Container } from "../../api/container.ts";
import type { ContainerId } from "../../base/ids.ts";
import type { Cause } from "../../journal/entry.ts";

/** {@link StartFailure.reason} of a container that could not be stopped, for its restart or for good. */
export const killContainerError = "KillContainerError";

/** Why a start failed, in the words that users know. */
export interface StartFailure {
  readonly reason: string;
  readonly message: string;
  /** Monotonic ms before which a retry is pointless; undefined: the worker's own back-off decides. */
  readonly retryAtMs: number | undefined;
  /** The error. */
  readonly error?: unknown;
}

/** Events of an operation; each is emitted at most once, or once per container. */
export interface OperationProgress {
  /** The pod's sandbox could not be stopped or created: nothing was started. */
  sandboxFailed(failure: StartFailure): void;
  /** The pod's sandbox exists; from here on the containers are independent. */
  sandboxMade(): void;
  /**
   * The instances are about to be stopped to be restarted, whatever their exit codes. Resolves when that is recorded:
   * another run of podwright could not know it otherwise. Never rejects.
   */
  stopping(instances: readonly ContainerId[], cause: Cause): Promise<void>;
  /** The container is being started: its volumes and sandbox exist. */
  attempted(container: Container): void;
  /** The container was started, or failed to start. */
  settled(container: string, failure: StartFailure | undefined): void;
  /** The resize failed, possibly halfway. */
  resizeFailed(error: unknown): void;
}

/**
 * Slow work on a pod (pulls, stops, hooks). While it is in progress its containers belong to it alone; other containers
 * of the pod are managed meanwhile.
 */
export interface PodOperation {
  /** Its name, for diagnostics: `start the pod`, `restart container web`. */
  readonly name: string;
  /** The containers that it starts or stops, in order. */
  readonly containers: readonly string[];
  /** It replaces or creates the sandbox: nothing else of the pod can run beside it. */
  readonly wholePod: boolean;
  /** It changes the pod's resources: one at a time. */
  readonly resizes?: true;
  /** @throws the signal's reason when canceled; anything else is a defect */
  readonly run: (progress: OperationProgress, signal: AbortSignal) => Promise<void>;
}
