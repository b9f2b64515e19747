import type { Authorizer } from "./access.ts";

/**
 * Mode AlwaysAllow: authenticated clients may do everything. Upstream allows anonymous clients as well, which by its
 * flags' defaults has exposed the pods of many nodes to their networks. Here the anonymous user may only query the
 * node's health, unless both anonymous access and AlwaysAllow are configured explicitly.
 */
export const allowKnown: Authorizer = async ({ name }, { verb, subresources }) => {
  if (name !== "system:anonymous") return true;
  return verb === "get" && subresources.some((subresource) => ["healthz", "metrics"].includes(subresource));
};

export const allowEverybody: Authorizer = async () => true;
