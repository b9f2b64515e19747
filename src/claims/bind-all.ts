import { objectKey } from "../sources/run-objects.ts";
import { type Binding, unboundClaims } from "./bind.ts";
import { boundTo, type KeptClaim, ownVolumeName, type StorageState } from "./kept-claim.ts";

/** A claim and the volume, or its own directory, that it is bound to. */
export interface BoundClaim {
  readonly claim: KeptClaim;
  readonly binding: Exclude<Binding, { readonly kind: "none" }>;
}

export interface Bindings {
  /** All claims, as bound. */
  readonly claims: ReadonlyMap<string, KeptClaim>;
  /** The new bindings in their order. */
  readonly bound: readonly BoundClaim[];
  /** Why the others are not bound, by `namespace/name`. */
  readonly whys: ReadonlyMap<string, string>;
}

/**
 * Why a claim that is not bound is not. One that could be is about to be bound, or its binding did not reach the disk, or
 * what was in its way went without a try since, as another claim's damaged file that was removed.
 */
export function whyUnbound(binding: Binding): string {
  if (binding.kind === "none") return binding.why;
  const why = "the last try failed, as on a full disk, or there has been none since it became possible";
  const remedy = "a pod that needs it, or the next 'podwright run' with a manifest, binds it";
  return `it is not bound yet, although it can be: ${why}; ${remedy}`;
}

/** Binds all claims that can be bound. Pure if `decide` is. */
export function bindAll(state: StorageState, decide: (claim: KeptClaim, state: StorageState) => Binding): Bindings {
  const claims = new Map(state.claims);
  const bound: BoundClaim[] = [];
  const whys = new Map<string, string>();
  // A claim that waited for a volume gets a directory once another claim has the volume, whichever came first.
  for (let before = -1; before < bound.length;) {
    before = bound.length;
    whys.clear();
    for (const claim of unboundClaims(claims.values())) {
      const binding = decide(claim, { ...state, claims });
      if (binding.kind === "none") {
        whys.set(objectKey(claim.metadata), binding.why);
        continue;
      }
      bound.push({ claim: boundTo(claim, binding.kind === "volume" ? binding.name : ownVolumeName(claim)), binding });
      claims.set(objectKey(claim.metadata), bound.at(-1)?.claim ?? claim);
    }
  }
  return { claims, bound, whys };
}
