import { isStaticPod } from "../../api/pod-kind.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { isDeleted, isMirror } from "../life/cluster.ts";
import type { Rule, RuleMaker } from "./rule.ts";

const mirrorOf = "kubernetes.io/config.mirror";

/**
 * The mirror pod of a desired static pod stays, even while manifests are read late: podwright deletes it only with a
 * known reason, and never for a pod that is being stopped. Judged at the time of the decision, because the desired
 * state may change before the deletion.
 */
export const mirrorPods: RuleMaker = ({ node, pods }, broken): Rule => {
  const { cluster } = node;
  if (cluster === undefined) return {};
  /** Static pods whose manifests were removed in this run, and whose return podwright has not seen. */
  const gone = new Set<string>();
  /** Static pods that this run is stopping: names by UID. */
  const stopping = new Map<string, string>();
  /** Mirror pods that show an earlier instance of their pod, whose status the server rejects. */
  const refused = new Set<string>();
  cluster.server.onServed(({ code, before }) => {
    if (code === 422 && before !== undefined && isMirror(before)) refused.add(before.value.metadata.uid);
  });
  return {
    entry: ({ kind, what, pod, cause }) => {
      const uid = pod?.uid ?? "";
      if (what === lifeStarted) for (const known of [gone, stopping]) known.clear();
      // It may have read the manifests for the first time while one was away.
      for (const [known, { metadata }] of pods) if (!node.desired.has(metadata.uid)) gone.add(known);
      const spec = pods.get(uid);
      if (what === "PodTerminating" && pod && spec && isStaticPod(spec)) stopping.set(uid, pod.name);
      if (what === "PodTerminated" || what === "PodFinished") stopping.delete(uid);
      if (what === "PodRemoved") gone.add(uid);
      if (what === "PodAdded") gone.delete(uid);
      if (kind !== "action" || !what.endsWith("MirrorPod")) return;
      if ([...stopping.values()].includes(pod?.name ?? "")) {
        broken("a pod's mirror waits for its stop", `${pod?.name}: ${what}: ${cause?.message}`);
      }
      if (what !== "DeleteMirrorPod" || refused.has(uid)) return;
      const mirror = cluster.mirrors().find(({ value }) => value.metadata.uid === uid);
      if (mirror === undefined || isDeleted(mirror)) return;
      const { name, annotations } = mirror.value.metadata;
      const wanted = cluster.statics().filter(({ metadata }) => metadata.name === name);
      // Of two static pods of one name only one has a mirror pod.
      const isRight = wanted.length === 1 && wanted[0]?.metadata.uid === annotations?.[mirrorOf];
      if (!isRight || gone.has(String(annotations?.[mirrorOf]))) return;
      broken("a valid mirror pod stays", `${name}'s is deleted: ${cause?.message}`);
    },
  };
};
