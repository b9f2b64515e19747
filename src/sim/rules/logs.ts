import { nameOf } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/**
 * No instance of a container writes to the log of another one. As long as the runtime has a container in a sandbox that is ready, its log is there. One of an earlier sandbox may be
 * left of a removal that was cut off, before the pod was wanted again.
 */
export const logs: RuleMaker = ({ world, node, pods }, broken): Rule => ({
  change: ({ type, podUid: uid, container }) => {
    if (type !== "created" || container === undefined || node.files.ownerOf(container.logPath) === undefined) return;
    // Where somebody took the newest away, the count goes on from the one before.
    const hasOthers = [...world.containers.values()].some((other) => {
      const isTwin = nameOf(other) === nameOf(container) && other.config.labels["io.kubernetes.pod.uid"] === uid;
      return isTwin && other !== container;
    });
    if (hasOthers) return;
    broken(
      "a log is of one instance",
      `${uid}/${nameOf(container)} is to write to ${container.logPath}, which is there`,
    );
  },
  atRest: async () => {
    for (const container of world.containers.values()) {
      const { logPath, startedAt, config } = container;
      const uid = config.labels["io.kubernetes.pod.uid"] ?? "";
      if (logPath === "" || startedAt === 0n || !pods.has(uid)) continue;
      if (world.sandboxes.get(container.sandboxId)?.ready !== true) continue;
      const slash = logPath.lastIndexOf("/");
      const name = logPath.slice(slash + 1);
      const found = (await node.files.list(logPath.slice(0, slash))).some((file) => file.name.startsWith(name));
      if (!found) broken("logs stay with their containers", `${uid}/${nameOf(container)} has no ${logPath}`);
    }
  },
});
