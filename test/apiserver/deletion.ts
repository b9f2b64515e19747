import { type ApiObject, draftAt, draftOf, type Fields, listAt, timestamp } from "./objects.ts";
import type { Strategy } from "./resource.ts";

/** The supported part of a DELETE's body (meta/v1 DeleteOptions). */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/**
 * The effect of a deletion request: removes the object, leaves it unchanged (already terminating), or marks it.
 * Finalizers keep an object, and so does the grace period of a pod on a node, until its kubelet confirms with grace
 * period 0. A later request can only shorten the grace period.
 */
export function deletePlan(
  object: ApiObject,
  strategy: Strategy,
  options: DeleteOptions,
): "remove" | "nothing" | Fields {
  const grace = strategy.graceSeconds?.(object, options.gracePeriodSeconds) ?? 0;
  const isHeld = listAt(object, "metadata.finalizers").length > 0 || listAt(object, "spec.finalizers").length > 0;
  if (grace === 0 && !isHeld) return "remove";
  const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata;
  if (deletionTimestamp !== undefined) {
    const isShorter = options.gracePeriodSeconds !== undefined && grace < (deletionGracePeriodSeconds ?? 0);
    if (!isShorter) return "nothing";
  }
  return markDeleted(object, grace);
}

/** Marks an object as terminating, or shortens its grace period. */
export function markDeleted(object: ApiObject, grace: number): Fields {
  const { deletionTimestamp, deletionGracePeriodSeconds, generation } = object.metadata;
  const end =
    deletionTimestamp === undefined
      ? Date.now() + grace * 1000
      : Date.parse(deletionTimestamp) - ((deletionGracePeriodSeconds ?? 0) - grace) * 1000;
  const draft = draftOf(object);
  const metadata = draftAt(draft, "metadata");
  metadata["deletionTimestamp"] = timestamp(end);
  metadata["deletionGracePeriodSeconds"] = grace;
  // Only the first deletion request counts as a change of the desired state.
  if (generation !== undefined && deletionTimestamp === undefined) metadata["generation"] = generation + 1;
  return draft;
}
