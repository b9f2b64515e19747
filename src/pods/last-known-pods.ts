import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Files } from "../ports/files.ts";
import { keptSpec } from "../runtime/layout/kept-spec.ts";
import { Annotation } from "../runtime/config/labels.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { hasEnded } from "./pod-checkpoint.ts";

/**
 * The API server's pods among the running ones, from their checkpoints. Not those that were being stopped, because that
 * request may not be repeated.
 * @param running UIDs of pods with a ready sandbox
 */
export async function lastKnownPods(
  files: Files,
  node: Pick<NodeContext, "rootDirectory">,
  running: readonly PodUid[],
): Promise<Pod[]> {
  const pods: Pod[] = [];
  for (const uid of new Set(running)) {
    const pod = isPlainName(uid) ? await keptSpec(files, node, uid) : undefined;
    if (pod?.metadata.annotations?.[Annotation.configSource] !== "api") continue;
    const isWanted = pod.metadata.deletionTimestamp === undefined && !(await hasEnded({ files, node }, uid));
    if (isWanted) pods.push(pod);
  }
  return pods;
}

/** Sandbox labels are untrusted input. */
function isPlainName(uid: PodUid): boolean {
  return /^[\w.-]+$/u.test(uid) && !uid.startsWith(".");
}
