import { errorMessage } from "../../base/errors.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import { containerGarbage, type GarbagePolicy, sandboxGarbage } from "../actions/garbage.ts";
import { minimumGraceSeconds } from "../actions/grace.ts";
import type { ContainerStatus, PodStatus, SandboxStatus } from "../status/pod-status.ts";
import { removeContainer } from "./remove-pod.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import { tellKill } from "./tell-kill.ts";
import { ignoreNotFound } from "./unstarted.ts";

const containerCause: Cause = { code: "ContainerGC", message: "only the last dead instances of a container are kept" };
const sandboxCause: Cause = { code: "SandboxGC", message: "the pod has a newer sandbox, and nothing is in this one" };

/**
 * Removes dead containers and sandboxes of a pod that goes on; returns whether there were any. Failing to remove one holds
 * nothing up: the next look finds it again. Rejects only with the signal's reason.
 */
export async function collectGarbage(
  deps: RuntimeDependencies,
  pod: PodRef,
  status: PodStatus,
  policy: GarbagePolicy,
  signal: AbortSignal,
): Promise<boolean> {
  const containers = containerGarbage(status, policy, deps.clock.now());
  const sandboxes = sandboxGarbage(status);
  const tolerate = async (work: Promise<void>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      signal.throwIfAborted();
      deps.log.warn("removing what is left of a pod's earlier life failed", { ...pod, error: errorMessage(error) });
    }
  };
  for (const container of containers) await tolerate(removeDead(deps, pod, container, containerCause, signal));
  for (const sandbox of sandboxes) await tolerate(removeSandbox(deps, pod, sandbox, signal));
  return containers.length + sandboxes.length > 0;
}

/** Removes a dead container; one of which the runtime does not know the state may run, and is stopped before. */
export async function removeDead(
  deps: RuntimeDependencies,
  pod: PodRef,
  container: ContainerStatus,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  const { id, name } = container;
  if (container.state === "unknown") {
    const action: ActionInput = {
      what: "StopContainer",
      message: `stop container ${name} (${shortId(id)}), of which the runtime does not know whether it runs`,
      pod,
      container: name,
      cause,
      data: { id, graceSeconds: minimumGraceSeconds },
    };
    const eventMessage = "Container is in unknown state, try killing it before removal";
    tellKill(deps, pod, { id, name, eventMessage }, cause);
    const stop = { containerId: id, timeout: BigInt(minimumGraceSeconds) };
    await perform(deps.journal, deps.clock, action, () =>
      ignoreNotFound(deps.cri.runtime.stopContainer(stop, { signal })),
    );
  }
  await removeContainer(deps, pod, container, cause, signal);
}

/** Stopped before it is removed: one that died by itself holds its network until then. */
async function removeSandbox(
  deps: RuntimeDependencies,
  pod: PodRef,
  { id }: SandboxStatus,
  signal: AbortSignal,
): Promise<void> {
  const action: ActionInput = {
    what: "RemovePodSandbox",
    message: `remove sandbox ${shortId(id)}`,
    pod,
    cause: sandboxCause,
    data: { id },
  };
  const { runtime } = deps.cri;
  await perform(deps.journal, deps.clock, action, async () => {
    await ignoreNotFound(runtime.stopPodSandbox({ podSandboxId: id }, { signal }));
    await ignoreNotFound(runtime.removePodSandbox({ podSandboxId: id }, { signal }));
  });
}
