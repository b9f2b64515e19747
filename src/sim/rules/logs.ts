import { usualConfig } from "../life/node-config.ts";
import { nameOf } from "../world-model.ts";
import { idOf } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/**
 * No instance of a container writes to another's log. While the runtime has a container in a ready sandbox, its log
 * exists, unless its removal has begun, which starts with the log. An earlier sandbox's container may remain from an
 * interrupted removal, before the pod was desired again. The number of files of each log is limited as configured.
 */
export const logs: RuleMaker = ({ world, node, pods }, broken): Rule => {
  /** IDs of containers whose removal has begun. */
  const leaving = new Set<string>();
  /** Logs of started containers. Some runtimes open them earlier, but a container that never ran writes nothing. */
  const written = new Set<string>();
  return {
    change: ({ type, podUid: uid, container }) => {
      if (container === undefined) return;
      const { logPath } = container;
      if (type === "started") written.add(logPath);
      if (type !== "created") return;
      // It may have been removed with its pod, and created again.
      if (node.files.ownerOf(logPath) === undefined) written.delete(logPath);
      if (!written.has(logPath)) return;
      // If others removed the newest instance, counting continues from the one before.
      const hasOthers = [...world.containers.values()].some((other) => {
        const isTwin = nameOf(other) === nameOf(container) && other.config.labels["io.kubernetes.pod.uid"] === uid;
        return isTwin && other !== container;
      });
      if (hasOthers) return;
      const where = `${uid}/${nameOf(container)}`;
      broken("a log has one instance", `${where} is to write to ${logPath}, which is there`);
    },
    entry: (entry) => {
      if (entry.kind === "action" && entry.what === "RemoveContainer") leaving.add(idOf(entry));
    },
    atRest: async () => {
      for (const container of world.containers.values()) {
        const { id, logPath, startedAt, config } = container;
        const uid = config.labels["io.kubernetes.pod.uid"] ?? "";
        if (logPath === "" || startedAt === 0n || !pods.has(uid) || leaving.has(id)) continue;
        if (world.sandboxes.get(container.sandboxId)?.ready !== true) continue;
        const slash = logPath.lastIndexOf("/");
        const name = logPath.slice(slash + 1);
        const files = (await node.files.list(logPath.slice(0, slash))).filter((file) => file.name.startsWith(name));
        if (files.length > usualConfig.logRotation.maxFiles) {
          broken(
            "no more logs than are to be kept",
            `${uid}/${nameOf(container)} has ${files.length} files of ${name}`,
          );
        }
        if (files.length > 0) continue;
        broken("logs stay with their containers", `${uid}/${nameOf(container)} has no ${logPath}`);
      }
    },
  };
};
