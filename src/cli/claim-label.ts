import type { ClaimView } from "../server/local-api.ts";

/** As people name a claim: without the usual namespace. */
export function claimLabel({ namespace, name }: Pick<ClaimView, "namespace" | "name">): string {
  return namespace === "default" ? name : `${namespace}/${name}`;
}
