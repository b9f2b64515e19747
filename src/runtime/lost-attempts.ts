import type { Pod } from "../api/pod.ts";
import type { Files } from "../ports/files.ts";
import { podLogDirectory, restartCountOfLog } from "./log-paths.ts";
import type { NodeContext } from "./node-context.ts";
import type { ContainerToStart } from "./container-decision.ts";

/**
 * The start with its restart count: when the runtime knows no instance of the container, but one has left a log, the
 * count goes on from there (upstream: highest `<n>.log` + 1). So counts never go back, and no log is overwritten.
 */
export async function withLostAttempts(
  files: Files,
  node: Pick<NodeContext, "podLogsRoot">,
  pod: Pod,
  start: ContainerToStart,
): Promise<ContainerToStart> {
  if (start.attempt > 0 || start.leftover !== undefined) return start;
  const logs = await files.list(`${podLogDirectory(node.podLogsRoot, pod)}/${start.container.name}`);
  const counts = logs.map(({ name }) => restartCountOfLog(name)).filter((count) => count !== undefined);
  return counts.length === 0 ? start : { ...start, attempt: Math.max(...counts) + 1 };
}
