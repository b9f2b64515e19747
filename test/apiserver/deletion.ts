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
  const { deletionTimestamp, deletionGracePeriodSeconds, generation } = object.metadata;
  let end = Date.now() + grace * 1000;
  if (deletionTimestamp !== undefined) {
    const known = deletionGracePeriodSeconds ?? 0;
    const isShorter = options.gracePeriodSeconds !== undefined && grace < known;
    if (!isShorter) return "nothing";
    end = Date.parse(deletionTimestamp) - (known - grace) * 1000;
  }
  const draft = draftOf(object);
  const metadata = draftAt(draft, "metadata");
  metadata["deletionTimestamp"] = timestamp(end);
  metadata["deletionGracePeriodSeconds"] = grace;
  if (generation !== undefined) metadata["generation"] = generation + 1;
  return draft;
}
