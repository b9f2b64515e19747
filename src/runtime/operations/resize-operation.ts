import { settleAll } from "../../base/side-by-side.ts";
import type { ContainerToKill, ContainerToStart } from "../actions/container-decision.ts";
import type { PodResize } from "../actions/resize-actions.ts";
import type { OperationProgress, PodOperation } from "./pod-operation.ts";
import { failureOf } from "./start-error.ts";

/** The steps of a resize. */
export interface ResizeSteps {
  stop(kill: ContainerToKill, progress: OperationProgress, signal: AbortSignal): Promise<void>;
  /** Changes the cgroups. */
  resize(signal: AbortSignal): Promise<void>;
  start(start: ContainerToStart, progress: OperationProgress, signal: AbortSignal): Promise<void>;
}

/**
 * A resize as an operation: containers that need a restart are stopped, then cgroups change, then those containers are
 * started. So none starts with more than its pod has, and none blocks a decrease.
 */
export function resizeOperation(steps: ResizeSteps, { updates, restarts }: PodResize): PodOperation {
  const updated = updates.map(({ container }) => container.name);
  const restarted = restarts.map(({ start }) => start.container.name);
  return {
    name: "resize the pod",
    containers: [...updated, ...restarted],
    wholePod: false,
    resizes: true,
    run: async (progress, signal) => {
      try {
        const stops = restarts.map(({ kill }) => steps.stop(kill, progress, signal));
        await settleAll("stops for a resize", stops);
        await steps.resize(signal);
      } catch (error) {
        signal.throwIfAborted();
        // A stopped container is restarted like any that exited.
        progress.resizeFailed(error);
        return;
      }
      for (const name of updated) progress.settled(name, undefined);
      const startOne = async (start: ContainerToStart): Promise<void> => {
        const { name } = start.container;
        try {
          await steps.start(start, progress, signal);
          progress.settled(name, undefined);
        } catch (error) {
          signal.throwIfAborted();
          progress.settled(name, failureOf(error));
        }
      };
      await settleAll(
        "restarts for a resize",
        restarts.map(({ start }) => startOne(start)),
      );
    },
  };
}
