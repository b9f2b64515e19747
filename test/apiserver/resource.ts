import type { User } from "./authn.ts";
import type { ApiObject, Draft, Fields } from "./objects.ts";

/** A problem of an object: `["spec.nodeName", "field is immutable"]`. */
export type Problem = readonly [field: string, message: string];

/** How objects of a kind are created and changed. Drafts already have metadata and identity. */
export interface Strategy {
  /** Sets defaults of a new object, and removes fields that its author may not set. */
  readonly create?: (draft: Draft, author: User) => void;
  /** Restores fields that an update of the object must not change, mainly its status. */
  readonly update?: (draft: Draft, old: ApiObject) => void;
  /** Restores fields that an update of a subresource must not change. */
  readonly updateSubresource?: (draft: Draft, old: ApiObject, subresource: string) => void;
  /** @param subresource `""` for the object itself */
  readonly validate?: (object: Fields, old: ApiObject | undefined, subresource: string) => readonly Problem[];
  /** Whether every valid path segment is a valid name. */
  readonly anyName?: boolean;
  /** Whether updates require a resourceVersion. */
  readonly needsResourceVersion?: boolean;
  /** Whether `metadata.generation` counts changes of `spec`. */
  readonly countsGenerations?: boolean;
  /**
   * The grace period of a deletion in seconds.
   * @param asked the requested grace period
   */
  readonly graceSeconds?: (object: ApiObject, asked: number | undefined) => number;
}

/** A resource of one group and version. */
export interface Resource {
  /** `""` for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
  readonly subresources: readonly string[];
  /** Fields of field selectors, besides name and namespace. */
  readonly selectable: readonly string[];
  readonly strategy: Strategy;
  /** Its name in the store, common to all versions. */
  readonly storage: string;
  /** Between this version and the stored form. */
  readonly conversion?: {
    readonly fromStored: (object: ApiObject) => ApiObject;
    readonly toStored: (given: Fields) => Fields;
  };
}

/** `v1`, `coordination.k8s.io/v1` */
export function apiVersionOf({ group, version }: Pick<Resource, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}

/** The store's key of an object. */
export function keyOf(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === "" ? name : `${namespace}/${name}`;
}
