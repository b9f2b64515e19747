import { fullName } from "../api/full-name.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import { Annotation } from "../runtime/config/labels.ts";
import type { ApiPod } from "../sources/api-pod.ts";

/** A pending action on a mirror pod. */
export type MirrorAction =
  | { readonly kind: "create"; readonly pod: Pod; readonly cause: Cause }
  | { readonly kind: "delete"; readonly mirror: ApiPod; readonly cause: Cause };

/**
 * Mirror pods that are missing, outdated, being deleted, or without a static pod. A wrong mirror pod is deleted first
 * and recreated afterwards. A static pod that is stopping keeps its mirror pod, which reports its end: until then the
 * scheduler must not see its resources as free. Pure.
 * @param statics the desired static pods
 * @param allKnown whether all manifests have been read and all static pods of the node are known; before that, none is
 *   an orphan
 * @param refused UIDs of mirror pods whose status the server rejects
 * @param leaving full names of static pods that are stopping, see {@link leavingNames}
 */
export function mirrorActions(
  statics: readonly Pod[],
  mirrors: readonly ApiPod[],
  allKnown: boolean,
  refused: ReadonlySet<PodUid> = new Set(),
  leaving: ReadonlySet<string> = new Set(),
): MirrorAction[] {
  const wanted = new Map(statics.map((pod) => [fullName(pod.metadata), pod]));
  const found = new Set(mirrors.map(({ metadata }) => fullName(metadata)));
  const actions = mirrors.flatMap((mirror): MirrorAction[] => {
    const cause = wrong(mirror, wanted.get(fullName(mirror.metadata)), refused);
    const mayBeRight = !allKnown && (cause?.code === "MirrorPodOrphaned" || cause?.code === "MirrorPodOutdated");
    return cause === undefined || mayBeRight ? [] : [{ kind: "delete", mirror, cause }];
  });
  const cause: Cause = { code: "MirrorPodMissing", message: "the static pod has no mirror pod" };
  const missing = statics.filter((pod) => !found.has(fullName(pod.metadata)));
  const all = [...actions, ...missing.map((pod): MirrorAction => ({ kind: "create", pod, cause }))];
  return all.filter((action) => !leaving.has(fullName(podOf(action).metadata)));
}

interface HashedPod {
  readonly metadata: Pick<Pod["metadata"], "namespace" | "name" | "annotations">;
}

/** A static pod on the node, desired or not. */
export interface OwnStaticPod {
  readonly pod: HashedPod;
  readonly isStopping: boolean;
}

/** Full names of static pods that are stopping, or about to. Pure. */
export function leavingNames(own: readonly OwnStaticPod[], statics: readonly Pod[]): Set<string> {
  const keyOfHash = (pod: HashedPod): string => `${fullName(pod.metadata)} ${hashOf(pod, Annotation.configHash)}`;
  const wanted = new Set(statics.map(keyOfHash));
  return new Set(
    own.filter((each) => each.isStopping || !wanted.has(keyOfHash(each.pod))).map(({ pod }) => fullName(pod.metadata)),
  );
}

function wrong(mirror: ApiPod, pod: Pod | undefined, refused: ReadonlySet<PodUid>): Cause | undefined {
  if (pod === undefined) return { code: "MirrorPodOrphaned", message: "the static pod is no longer desired" };
  if (mirror.metadata.deletionTimestamp !== undefined) {
    return {
      code: "MirrorPodDeleted",
      message: "the mirror pod was deleted by someone else; the static pod keeps running",
    };
  }
  if (hashOf(mirror, Annotation.configMirror) !== hashOf(pod, Annotation.configHash)) {
    return {
      code: "MirrorPodOutdated",
      message: "the mirror pod shows an earlier version or another UID of the static pod",
    };
  }
  if (refused.has(mirror.metadata.uid)) {
    return {
      code: "MirrorPodOver",
      message: "the mirror pod shows an earlier instance of the static pod, which has ended",
    };
  }
  return undefined;
}

/** The mirror pod of a static pod. Pure. */
export function mirrorOf(pod: Pod, node: { readonly name: string; readonly uid: string }): object {
  const { name, namespace, labels, annotations } = pod.metadata;
  const owner = { apiVersion: "v1", kind: "Node", name: node.name, uid: node.uid, controller: true };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      ...(labels && { labels }),
      annotations: { ...annotations, [Annotation.configMirror]: hashOf(pod, Annotation.configHash) },
      ownerReferences: [owner],
    },
    spec: pod.spec,
  };
}

export function podOf(action: MirrorAction): Pod {
  return action.kind === "create" ? action.pod : action.mirror;
}

export function isMirrorOf(mirror: Pod, pod: Pod): boolean {
  const isSame = fullName(mirror.metadata) === fullName(pod.metadata);
  return isSame && hashOf(mirror, Annotation.configMirror) === hashOf(pod, Annotation.configHash);
}

export function keyOf(action: MirrorAction): string {
  return action.kind === "create" ? creationKey(action.pod) : `delete ${fullName(action.mirror.metadata)}`;
}

/** {@link keyOf} the creation of a mirror pod of that name. */
export function creationKey(pod: Pod): string {
  return `create ${fullName(pod.metadata)}`;
}

function hashOf(pod: HashedPod, annotation: string): string {
  return pod.metadata.annotations?.[annotation] ?? "";
}
