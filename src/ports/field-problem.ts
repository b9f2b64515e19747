/** A problem of one field of a given object. */
export interface FieldProblem {
  /** `Pod default/web` */
  readonly object: string;
  /** `["spec", "containers", 0, "image"]`; empty: the object as a whole. */
  readonly path: readonly (string | number)[];
  readonly detail: string;
}
