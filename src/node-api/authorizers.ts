import type { Authorizer } from "./access.ts";

/**
 * Mode AlwaysAllow: who is known may do everything. Upstream lets nobody in particular do so too, which by its flags'
 * defaults has opened the pods of many a node to its whole network: here the anonymous user may only ask how the node is,
 * unless somebody has written both that there is one and that everything is allowed.
 */
export const allowKnown: Authorizer = async ({ name }, { verb, subresources }) => {
  if (name !== "system:anonymous") return true;
  return verb === "get" && subresources.some((subresource) => ["healthz", "metrics"].includes(subresource));
};

/** Allows everything to everyone. */
export const allowEverybody: Authorizer = async () => true;
