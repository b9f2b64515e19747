import { type ApiObject, draftAt, draftOf, type Fields, listAt, timestamp } from "./objects.ts";
import type { Strategy } from "./resource.ts";

/** The body of a DELETE (meta/v1 DeleteOptions), as far as it is honoured. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/**
 * What a request to delete does: removes the object, leaves it as it is (it is going already), or marks it.
 * Finalizers hold an object back, and so does the grace of a pod that is on a node: it goes when its kubelet confirms
 * with a grace of 0. A later request can only shorten the grace.
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

/** An object that goes, or goes sooner than it was to go. */
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
  // That it goes is one change of what is wanted, however often it is said.
  if (generation !== undefined && deletionTimestamp === undefined) metadata["generation"] = generation + 1;
  return draft;
}
