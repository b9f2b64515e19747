import type { Pod } from "../../api/pod.ts";
import { restartingAllContainers } from "../../api/restart-policy.ts";
import { errorMessage } from "../../base/errors.ts";
import type { RestartAll } from "../actions/pod-actions.ts";
import { podRef } from "../pod-ref.ts";
import type { PodStatus } from "../status/pod-status.ts";
import { remainsOf } from "../status/remains.ts";
import type { ContainerRemoval } from "./container-removal.ts";
import type { PodOperation } from "./pod-operation.ts";
import type { PodStopper } from "./pod-stopper.ts";

/** Upstream's. */
const eventMessage = "killing";

/**
 * Restarts a pod in its sandbox (KEP-5532): every container is stopped without grace period or hooks and removed, the
 * one whose exit requested it last, so that after a crash halfway it is requested again. Logs stay, and with them the
 * restart counts.
 */
export function restartAllContainers(
  { stopper, removal }: { readonly stopper: PodStopper; readonly removal: ContainerRemoval },
  pod: Pod,
  status: PodStatus,
  { source, cause }: RestartAll,
): PodOperation {
  const ref = podRef(pod);
  const names = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(({ name }) => name);
  const own = status.containers.filter(({ name }) => names.includes(name));
  return {
    name: "restart all containers",
    containers: names,
    wholePod: true,
    run: async (progress, signal) => {
      try {
        const remains = { ...remainsOf({ ...status, containers: own }), unstarted: [], sandboxes: [] };
        await stopper.stopPod({ ref, pod, graceSeconds: 0, cause, eventMessage }, remains, signal);
        const victims = own.filter(({ name }) => name !== source.name);
        const sources = own.filter(({ name }) => name === source.name).reverse();
        for (const container of [...victims, ...sources]) {
          await removal.removeStartedOver(ref, container, cause, signal);
        }
      } catch (error) {
        signal.throwIfAborted();
        progress.sandboxFailed({
          reason: restartingAllContainers,
          message: errorMessage(error),
          retryAtMs: undefined,
          error,
        });
      }
    },
  };
}
