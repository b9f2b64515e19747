import type { Cause } from "../journal/entry.ts";
import type { OperationEvents } from "./pod-operations.ts";
import type { PodCheckpoint } from "./pod-checkpoint.ts";
import type { PodResizing } from "./pod-resize.ts";
import type { PodObserver } from "./pod-observer.ts";
import type { RestartTimes } from "./restart-times.ts";
import type { RuntimeOutage } from "./runtime-outage.ts";
import type { StartFailures } from "./start-failures.ts";

/** The parts of a worker that react to its operations. */
interface Learners {
  readonly outage: Pick<RuntimeOutage, "failed">;
  readonly failures: Pick<StartFailures, "sandboxFailed" | "settled">;
  readonly restarts: Pick<RestartTimes, "attempted" | "sandboxMade" | "stopped">;
  readonly checkpoint: Pick<PodCheckpoint, "save">;
  readonly resizing: Pick<PodResizing, "failed">;
  readonly observer: Pick<PodObserver, "acted">;
  /** Monotonic ms of the next try of what fails now. */
  readonly retryAtMs: () => number;
  readonly wake: (cause: Cause) => void;
}

/** Passes an operation's results to each part of the worker that needs them. */
export function operationEvents(to: Learners): OperationEvents {
  return {
    sandboxFailed: (failure) => {
      to.outage.failed(failure.error);
      to.failures.sandboxFailed(failure, to.retryAtMs());
    },
    sandboxMade: (before) => {
      to.restarts.sandboxMade(before);
      to.observer.acted("requestInspectSoon");
    },
    resizeFailed: (error) => {
      to.outage.failed(error);
      to.resizing.failed(error, to.retryAtMs());
    },
    stopping: async (instances, cause) => {
      for (const id of instances) to.restarts.stopped(id, cause);
      await to.checkpoint.save();
    },
    attempted: (container, before) => {
      to.restarts.attempted(container, before);
      // Immediately: its image pull may take minutes.
      void to.checkpoint.save();
    },
    settled: (container, failure) => {
      to.outage.failed(failure?.error);
      to.failures.settled(container, failure, to.retryAtMs());
    },
    moved: ({ name }) => {
      to.observer.acted();
      to.wake({ code: "OperationMoved", message: `operation progressed: ${name}` });
    },
  };
}
