import type { Pod } from "../../api/pod.ts";
import { settleAll } from "../../base/side-by-side.ts";
import type { Cause } from "../../journal/entry.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import { containerGraceSeconds } from "../actions/grace.ts";
import { killContainer, podIPs } from "./kill-pod.ts";
import type { OperationProgress, PodOperation } from "./pod-operation.ts";
import { podRef } from "../pod-ref.ts";
import type { SandboxStatus } from "../status/pod-status.ts";
import type { PodResize } from "../actions/resize-actions.ts";
import { resizePod } from "./resize-pod.ts";
import { failureOf, startContainer, type StartSandbox } from "./start-container.ts";
import { StartPlace } from "./start-place.ts";

/**
 * A resize as an operation: containers that need a restart for it are stopped, then cgroups change, then those are
 * started again. So none starts with more than its pod has, and none stands in the way of what shrinks.
 */
export function resizeOperation(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: SandboxStatus,
  resize: PodResize,
  start: (cause: Cause, signal: AbortSignal) => Promise<StartSandbox>,
): PodOperation {
  const updated = resize.updates.map(({ container }) => container.name);
  const restarted = resize.restarts.map((restart) => restart.start.container.name);
  return {
    name: "resize the pod",
    containers: [...updated, ...restarted],
    wholePod: false,
    resizes: true,
    run: async (progress, signal) => {
      try {
        await stopAll(deps, pod, sandbox, resize, signal);
        await resizePod(deps, pod, sandbox, resize, signal);
      } catch (error) {
        signal.throwIfAborted();
        // What was stopped is started again as what ended otherwise.
        progress.resizeFailed(error);
        return;
      }
      for (const name of updated) progress.settled(name, undefined);
      await settleAll(
        "restarts for a resize",
        resize.restarts.map((restart) => startOne(deps, pod, start, restart.start, progress, signal)),
      );
    },
  };
}

async function stopAll(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: SandboxStatus,
  { restarts }: PodResize,
  signal: AbortSignal,
): Promise<void> {
  const target = { ref: podRef(pod), pod };
  const addressed = { ...target, ips: podIPs(deps, target, [sandbox]) };
  const graceSeconds = containerGraceSeconds(pod, undefined);
  const stops = restarts.map(({ kill: { container, cause, eventMessage } }) =>
    killContainer(deps, addressed, { ...container, eventMessage }, graceSeconds, cause, signal),
  );
  await settleAll("stops for a resize", stops);
}

async function startOne(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: (cause: Cause, signal: AbortSignal) => Promise<StartSandbox>,
  start: PodResize["restarts"][number]["start"],
  progress: OperationProgress,
  signal: AbortSignal,
): Promise<void> {
  const { name } = start.container;
  try {
    using place = new StartPlace(deps.starts, deps.clock);
    await startContainer(deps, pod, await sandbox(start.cause, signal), start, { place, progress }, signal);
    progress.settled(name, undefined);
  } catch (error) {
    signal.throwIfAborted();
    progress.settled(name, failureOf(error));
  }
}
