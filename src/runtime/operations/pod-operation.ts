import type { Container } from "../../api/container.ts";

/** {@link StartFailure.reason} of what runs and could not be stopped, to be started anew or for good. */
export const killContainerError = "KillContainerError";

/** Why something of a pod could not be started, in the words that users know. */
export interface StartFailure {
  readonly reason: string;
  readonly message: string;
  /** Monotonic ms before which another try is pointless; undefined: the worker's own back-off decides. */
  readonly retryAtMs: number | undefined;
  /** What it failed with. */
  readonly error?: unknown;
}

/** What an operation tells while it runs; each name at most once. */
export interface OperationProgress {
  /** The pod's sandbox could not be stopped or made: nothing of the operation was started. */
  sandboxFailed(failure: StartFailure): void;
  /** The pod's sandbox is made; from here on the containers stand for themselves. */
  sandboxMade(): void;
  /** The container is being started: its volumes and its sandbox are there. */
  attempted(container: Container): void;
  /** The container was started, or could not be. */
  settled(container: string, failure: StartFailure | undefined): void;
  /** The pod's resources could not be changed: they may have been in part. */
  resizeFailed(error: unknown): void;
}

/**
 * Work on a pod that may take long (pulls, stops, hooks). While it is under way its containers are nobody else's; other
 * containers of the pod are looked after meanwhile.
 */
export interface PodOperation {
  /** What is done, for diagnostics: `start the pod`, `restart container web`. */
  readonly name: string;
  /** The containers that it starts or stops, in order. */
  readonly containers: readonly string[];
  /** It replaces or makes the sandbox: nothing else of the pod can go on beside it. */
  readonly wholePod: boolean;
  /** It changes the pod's resources: one at a time. */
  readonly resizes?: true;
  /** @throws the signal's reason when it was called off; anything else is a defect */
  readonly run: (progress: OperationProgress, signal: AbortSignal) => Promise<void>;
}
