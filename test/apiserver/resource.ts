import type { User } from "./authn.ts";
import type { ApiObject, Draft, Fields } from "./objects.ts";

/** `[field, message]`: what is wrong with an object, as `["spec.nodeName", "field is immutable"]`. */
export type Problem = readonly [field: string, message: string];

/** How one kind of object is made and changed. Drafts have their metadata and identity already. */
export interface Strategy {
  /** Fills in what the author of a new object left out, and removes what is not theirs to set. */
  readonly create?: (draft: Draft, author: User) => void;
  /** Puts back what an update of the object itself must not change, its status above all. */
  readonly update?: (draft: Draft, old: ApiObject) => void;
  /** Puts back what an update of a subresource must not change. */
  readonly updateSubresource?: (draft: Draft, old: ApiObject, subresource: string) => void;
  /** @param subresource `""` for the object itself */
  readonly validate?: (object: Fields, old: ApiObject | undefined, subresource: string) => readonly Problem[];
  /** Whether any name will do that can be part of a path. */
  readonly anyName?: boolean;
  /** Whether updates must say which revision they are based on. */
  readonly needsResourceVersion?: boolean;
  /** Whether `metadata.generation` counts the changes of `spec`. */
  readonly countsGenerations?: boolean;
  /**
   * Seconds between a request to delete an object and its end.
   * @param asked the grace the request asks for
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
  /** Fields that lists and watches can select by, beside name and namespace. */
  readonly selectable: readonly string[];
  readonly strategy: Strategy;
  /** The store's name of it. Two versions of one resource have one. */
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
