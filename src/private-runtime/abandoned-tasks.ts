import { errorMessage } from "../base/errors.ts";
import { type Cri, type CriRuntimeService, isCriError } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { Processes } from "../ports/processes.ts";

const removeTimeoutMs = 20_000;

export interface AbandonedTaskDeps {
  readonly processes: Pick<Processes, "run">;
  readonly log: Logger;
  /** Absolute path of containerd's ctr. */
  readonly ctr: string;
  /** containerd's socket. */
  readonly socket: string;
}

/**
 * The same runtime, only that every container of it can be removed. When a client that had a container started goes
 * away at the wrong moment (podwright is killed), containerd calls the start failed and keeps the task that it had made
 * already: its CRI says that the container has ended and refuses forever to remove it ("cannot delete running task",
 * containerd issue 11037). containerd's own client can take the task away.
 */
export function removingAbandonedTasks(cri: Cri, { processes, log, ctr, socket }: AbandonedTaskDeps): Cri {
  const removeContainer: CriRuntimeService["removeContainer"] = async (request, options) => {
    try {
      return await cri.runtime.removeContainer(request, options);
    } catch (error) {
      if (!isCriError(error, "FailedPrecondition") || !/\brunning task\b/.test(error.message)) throw error;
      const { containerId = "" } = request;
      const words = ["--address", socket, "--namespace", "k8s.io", "tasks", "rm", "--force", containerId];
      try {
        const { exitCode, stderr } = await processes.run(ctr, words, { timeoutMs: removeTimeoutMs });
        log.warn("removed the task of an interrupted start", { containerId, exitCode, stderr });
      } catch (failure) {
        log.warn("cannot remove the task of an interrupted start", { error: errorMessage(failure) });
        throw error;
      }
      return await cri.runtime.removeContainer(request, options);
    }
  };
  return { ...cri, runtime: { ...cri.runtime, removeContainer } };
}
