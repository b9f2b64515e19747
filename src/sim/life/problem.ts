/** A broken rule with details. */
export interface Problem {
  readonly rule: string;
  readonly detail: string;
  /** Simulated time. */
  readonly atMs: number;
}

/** The rule that an uncaught error breaks. */
export const simulationGoesOn = "the simulation goes on";

/** With the place where it was thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
