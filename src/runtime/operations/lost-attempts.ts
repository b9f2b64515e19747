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
 * The start with its restart count: when the runtime has no instance of the container but a log exists, the count
 * continues from there (upstream: highest `<n>.log` + 1), so counts never decrease and no log is overwritten. A
 * requested instance that never started does not count, although some runtimes have created its log.
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
