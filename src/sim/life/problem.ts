/** A rule that was broken, and by what. */
export interface Problem {
  readonly rule: string;
  readonly detail: string;
  /** Simulated time. */
  readonly atMs: number;
}

/** The rule that is broken by what is thrown in a life where nobody catches it. */
export const simulationGoesOn = "the simulation goes on";

/** With the place where it was thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
