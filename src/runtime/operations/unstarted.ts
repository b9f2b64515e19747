import type { Cause, PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import { isCriError } from "../../ports/cri.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import { unlinkLog } from "../layout/log-links.ts";
import type { NodeContext } from "../node-context.ts";
import type { ContainerStatus } from "../status/pod-status.ts";
import { shortId } from "../actions/sandbox-actions.ts";

export type UnstartedDependencies = Pick<RuntimeDependencies, "clock" | "cri" | "files" | "journal"> & {
  readonly node: Pick<NodeContext, "containerLogsRoot" | "podLogsRoot">;
};

/**
 * Removes an instance that was created and never started: it blocks its name and attempt. Nothing ran in it, so it is
 * killed: what stands in its place until then may know no stop signal, and some runtimes (CRI-O) would wait for its end for
 * nearly as long as the call may take.
 * @throws CriError
 */
export async function removeUnstarted(
  deps: UnstartedDependencies,
  pod: PodRef,
  { id, name }: Pick<ContainerStatus, "id" | "name">,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  // It would lead to the log of the next instance, which has a link of its own. The container goes last, so that a next
  // life knows what is left to do.
  await unlinkLog(deps, pod, { name, id });
  const action: ActionInput = {
    what: "RemoveContainer",
    message: `remove container ${name} (${shortId(id)}), created but never started`,
    pod,
    container: name,
    cause,
    data: { id },
  };
  await perform(deps.journal, deps.clock, action, async () => {
    await ignoreNotFound(deps.cri.runtime.stopContainer({ containerId: id, timeout: 0n }, { signal }));
    await ignoreNotFound(deps.cri.runtime.removeContainer({ containerId: id }, { signal }));
  });
}

/** What is not there needs no stopping and no removing (CRI: these calls are idempotent). */
export async function ignoreNotFound(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isCriError(error, "NotFound")) throw error;
  }
}
