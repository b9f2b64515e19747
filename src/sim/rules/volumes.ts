import { mayRun, nameOf, type SimContainer } from "../world-model.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import type { Rule, RuleMaker } from "./rule.ts";
import { podsDirectory } from "../life/recorded.ts";
import { isUnrecorded } from "./unrecorded.ts";

/** Actions that remove what a pod's containers need. */
const taking: ReadonlySet<EntryName> = new Set(["UnmountVolumes", "RemoveLeftovers", "RemoveCgroup"]);

/**
 * Volumes exist before their users and as long as these run, have the contents of their objects, and are removed with
 * their pod.
 */
export const volumes: RuleMaker = ({ world, node, pods }, broken): Rule => {
  function started(container: SimContainer, uid: string): void {
    for (const { hostPath } of container.config.mounts) {
      if (hostPath.includes("/kubernetes.io~nfs/") && node.mounts.anyBelow(hostPath) === undefined) {
        broken("volumes come first", `${uid}/${nameOf(container)} started without a mount at ${hostPath}`);
      }
      if (!hostPath.startsWith(podsDirectory) || node.files.ownerOf(hostPath) !== undefined) continue;
      broken("volumes come first", `${uid}/${nameOf(container)} started without ${hostPath}`);
    }
    const hasCgroup = [...node.cgroups.applied.keys()].some((path) => path.endsWith(`/pod${uid}`));
    if (!hasCgroup) broken("cgroups come first", `${uid}/${nameOf(container)} started without its pod's cgroup`);
  }

  return {
    change: ({ type, podUid: uid, container }) => {
      if (type === "started" && container !== undefined && pods.has(uid)) started(container, uid);
    },
    entry: ({ kind, what, pod }) => {
      const damaged = node.foreignVolumes.damaged();
      if (damaged !== undefined) broken("foreign volumes are left alone", damaged);
      if (kind !== "action" || !taking.has(what) || pod === undefined) return;
      const user = [...world.containers.values()].find((container) => {
        return mayRun(container) && container.config.labels["io.kubernetes.pod.uid"] === pod.uid;
      });
      if (user !== undefined) broken("volumes stay while in use", `${pod.uid}: taken from ${nameOf(user)}, which runs`);
    },
    disagreements: async () => {
      const problems: string[] = [];
      const { files, mounts, objects, desired } = node;
      const targets = (await mounts.list()).map(({ target }) => target);
      for (const target of targets.filter((each) => each.startsWith(podsDirectory))) {
        const uid = target.slice(podsDirectory.length + 1).split("/")[0] ?? "";
        if (!desired.has(uid) && !isUnrecorded(node, uid)) problems.push(`mount ${target} is still there`);
      }
      if (new Set(targets).size < targets.length) problems.push(`something is mounted twice: ${targets.join(" ")}`);
      for (const uid of desired.keys()) {
        for (const place of ["configmap/settings", "projected/all", "secret/secret"]) {
          const path = `${podsDirectory}/${uid}/volumes/kubernetes.io~${place}/revision`;
          // A pod that waits or has ended has no volumes.
          if ((await files.stat(path)) === undefined) continue;
          const shown = new TextDecoder().decode(await files.read(path, 100)).replace(/^.*-/, "");
          if (shown !== String(objects.revision)) problems.push(`${uid} sees revision ${shown} of ${objects.revision}`);
        }
      }
      return problems;
    },
  };
};
