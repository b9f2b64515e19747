/** A rule that was broken, and by what. */
export interface Problem {
  readonly rule: string;
  readonly detail: string;
  /** Simulated time. */
  readonly atMs: number;
}
