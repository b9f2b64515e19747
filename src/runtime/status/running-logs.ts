import type { RunningLog } from "../../logs/rotation.ts";
import { podLogDirectory } from "../layout/log-paths.ts";
import type { PodStatus } from "./pod-status.ts";

/**
 * The logs of a pod's running containers on this node: logs that the runtime keeps elsewhere are not this node's to
 * rename.
 */
export function runningLogs(status: PodStatus, podLogsRoot: string): RunningLog[] {
  const { uid, namespace, name } = status;
  const directory = `${podLogDirectory(podLogsRoot, status)}/`;
  return status.containers
    .filter(({ state, logPath }) => state === "running" && logPath.startsWith(directory) && !logPath.includes("/../"))
    .map((container) => ({
      pod: { uid, namespace, name },
      container: container.name,
      containerId: container.id,
      path: container.logPath,
    }));
}
