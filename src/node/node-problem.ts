/** Something that may keep the node from being ready, beside its runtime. */
export interface NodeProblem {
  /** In upstream's words; undefined: nothing is wrong. */
  readonly problem: string | undefined;
  /** Calls back when that has changed, until disposed of. */
  onChange(listener: () => void): Disposable;
}
