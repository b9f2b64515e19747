import type { Pod } from "../../api/pod.ts";
import { podLogDirectory, restartCountOfLog } from "../layout/log-paths.ts";
import type { Files } from "../../ports/files.ts";
import type { NodeContext } from "../node-context.ts";
import type { StartAttempts } from "./start-attempts.ts";
import type { ContainerToStart } from "../actions/container-decision.ts";

interface LogsAndAttempts {
  readonly files: Pick<Files, "list">;
  readonly node: Pick<NodeContext, "podLogsRoot">;
  readonly attempts: StartAttempts;
}

/**
 * The start with its restart count: when the runtime knows no instance of the container, but one has left a log, the
 * count goes on from there (upstream: highest `<n>.log` + 1). So counts never go back, and no log is overwritten. An instance
 * that was asked for and never started counts for nothing, although some runtimes have made its log: it is asked for again.
 */
export async function withLostAttempts(
  { files, node, attempts }: LogsAndAttempts,
  pod: Pod,
  start: ContainerToStart,
): Promise<ContainerToStart> {
  if (start.attempt > 0 || start.leftover !== undefined) return start;
  const open = attempts.of(pod.metadata.uid, start.container.name);
  if (open !== undefined) return { ...start, attempt: open };
  const logs = await files.list(`${podLogDirectory(node.podLogsRoot, pod.metadata)}/${start.container.name}`);
  const counts = logs.map(({ name }) => restartCountOfLog(name)).filter((count) => count !== undefined);
  return counts.length === 0 ? start : { ...start, attempt: Math.max(...counts) + 1 };
}
