import type { Pod } from "../../api/pod.ts";
import { errorMessage } from "../../base/errors.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import { killPod, remainsOf } from "./kill-pod.ts";
import { ignoreNotFound } from "./unstarted.ts";
import type { RestartAll } from "../actions/pod-actions.ts";
import { podRef } from "../pod-ref.ts";
import type { ContainerStatus, PodStatus } from "../status/pod-status.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import type { PodOperation } from "./pod-operation.ts";

/**
 * Starts a pod over in its sandbox (KEP-5532): every container is stopped without grace or hooks and removed, the one
 * whose exit asked for it last, so that a crash half-way asks for it again. Logs stay, and with them the restart counts.
 */
export function restartAllContainers(
  deps: RuntimeDependencies,
  pod: Pod,
  status: PodStatus,
  restartAll: RestartAll,
): PodOperation {
  const { source, cause } = restartAll;
  const names = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(({ name }) => name);
  const own = status.containers.filter(({ name }) => names.includes(name));
  return {
    name: "restart all containers",
    containers: names,
    wholePod: true,
    run: async (progress, signal) => {
      try {
        const remains = { ...remainsOf({ ...status, containers: own }), unstarted: [], sandboxes: [] };
        await killPod(deps, { ref: podRef(pod), pod }, remains, 0, cause, signal);
        const victims = own.filter(({ name }) => name !== source.name);
        const sources = own.filter(({ name }) => name === source.name).reverse();
        for (const container of [...victims, ...sources]) await remove(deps, pod, container, restartAll, signal);
      } catch (error) {
        signal.throwIfAborted();
        progress.sandboxFailed({
          reason: "RestartingAllContainers",
          message: errorMessage(error),
          retryAtMs: undefined,
          error,
        });
      }
    },
  };
}

async function remove(
  deps: RuntimeDependencies,
  pod: Pod,
  { id, name }: ContainerStatus,
  { cause }: RestartAll,
  signal: AbortSignal,
): Promise<void> {
  const action: ActionInput = {
    what: "RemoveContainer",
    message: `remove container ${name} (${shortId(id)}), its pod starts over`,
    pod: podRef(pod),
    container: name,
    cause,
    data: { id },
  };
  await perform(deps.journal, deps.clock, action, () =>
    ignoreNotFound(deps.cri.runtime.removeContainer({ containerId: id }, { signal })),
  );
  deps.preStops.forget(id);
}
