import { settleAll } from "../../base/side-by-side.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import { containerLogLinkName, containerLogPath, restartCountOfLog } from "../layout/log-paths.ts";
import { ignoreNotFound } from "./unstarted.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import type { ContainerStatus, PodStatus } from "../status/pod-status.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import type { Release } from "../pod-holdings.ts";
import { inTeardown } from "./teardown.ts";

/**
 * Removes one dead container with its log and the link to that. The container goes last: as long as it is there, a later
 * life finds what has to be removed.
 * @param keepsLog its log stays, and those of instances before it go: the next count goes on from there
 */
export async function removeContainer(
  deps: RuntimeDependencies,
  pod: PodRef,
  container: ContainerStatus,
  cause: Cause,
  signal: AbortSignal,
  keepsLog = false,
): Promise<void> {
  const action: ActionInput = {
    what: "RemoveContainer",
    message: `remove container ${container.name} (${shortId(container.id)})`,
    pod,
    container: container.name,
    cause,
    data: { id: container.id },
  };
  await perform(deps.journal, deps.clock, action, async () => {
    await removeContainerLog(deps, pod, container, keepsLog);
    await ignoreNotFound(deps.cri.runtime.removeContainer({ containerId: container.id }, { signal }));
  });
  deps.preStops.forget(container.id);
}

/** The log of one instance, what rotation made of it, and the link; or logs of those before it, and the link. */
async function removeContainerLog(
  deps: RuntimeDependencies,
  pod: PodRef,
  container: ContainerStatus,
  keepsLog: boolean,
): Promise<void> {
  const { files, node } = deps;
  const podLogs = `${node.podLogsRoot}/${pod.namespace}_${pod.name}_${pod.uid}`;
  const path = `${podLogs}/${containerLogPath(container.name, container.restartCount)}`;
  const directory = path.slice(0, path.lastIndexOf("/"));
  const goes = (name: string): boolean => {
    const count = restartCountOfLog(name) ?? Infinity;
    return keepsLog ? count < container.restartCount : count === container.restartCount;
  };
  // A pod that may write to the node's logs could have put a link there, to where the same names mean something else.
  const isOwn = (await isDirectory(files, podLogs)) && (await isDirectory(files, directory));
  for (const entry of isOwn ? await files.list(directory) : []) {
    if (goes(entry.name)) await files.remove(`${directory}/${entry.name}`);
  }
  await files.remove(`${node.containerLogsRoot}/${containerLogLinkName(pod, container.name, container.id)}`);
}

async function isDirectory(files: RuntimeDependencies["files"], path: string): Promise<boolean> {
  return (await files.stat(path))?.type === "directory";
}

export interface Removal extends Release {
  /** It has ended for good, and this life has released what others may need. */
  readonly hasReleased: boolean;
}

/**
 * Removes all that a stopped pod left: containers, sandboxes, and what it holds of the node. Each step may be done again,
 * so a failure half-way is mended by the next try.
 */
export async function removePod(
  deps: RuntimeDependencies,
  pod: PodRef,
  status: PodStatus,
  removal: Removal,
  signal: AbortSignal,
): Promise<void> {
  const { cause, comesBack, hasReleased } = removal;
  await inTeardown(deps, "later", signal, async (queuedMs) => {
    const isLast = ({ name, restartCount }: ContainerStatus): boolean =>
      !status.containers.some((other) => other.name === name && other.restartCount > restartCount);
    await settleAll(
      `removing the containers of pod ${pod.name}`,
      status.containers.map((container) => {
        return removeContainer(deps, pod, container, cause, signal, comesBack && isLast(container));
      }),
    );
    await removeSandboxes(deps, pod, status, { cause, queuedMs }, signal);
  });
  deps.attempts.forget(pod.uid);
  if (!hasReleased) await deps.holdings.releaseEnded(pod, cause, signal);
  await deps.holdings.releaseRemoved(pod, removal, signal);
}

async function removeSandboxes(
  deps: RuntimeDependencies,
  pod: PodRef,
  status: PodStatus,
  { cause, queuedMs }: { readonly cause: Cause; readonly queuedMs: number },
  signal: AbortSignal,
): Promise<void> {
  for (const sandbox of status.sandboxes) {
    const action: ActionInput = {
      what: "RemovePodSandbox",
      message: `remove sandbox ${shortId(sandbox.id)}`,
      pod,
      cause,
      data: { id: sandbox.id, queuedMs },
    };
    await perform(deps.journal, deps.clock, action, () =>
      ignoreNotFound(deps.cri.runtime.removePodSandbox({ podSandboxId: sandbox.id }, { signal })),
    );
  }
}
