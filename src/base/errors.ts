import type { FieldProblem } from "../ports/field-problem.ts";

/** Exit codes of every podwright command. */
export const ExitCode = { done: 0, failed: 1, badInput: 2, environment: 3 } as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/**
 * An error for a person: what was tried, on what, and what to do about it. Anything else that reaches the command line
 * is a defect of podwright.
 */
export class PodwrightError extends Error {
  readonly exitCode: ExitCode;
  /** What to do about it: one imperative sentence. */
  readonly remedy: string | undefined;
  /** The problems by object and field, for callers that know the objects' files. */
  readonly problems: readonly FieldProblem[];
  constructor(exitCode: ExitCode, message: string, options: PodwrightErrorOptions = {}) {
    super(message, options);
    this.name = "PodwrightError";
    this.exitCode = exitCode;
    this.remedy = options.remedy;
    this.problems = options.problems ?? [];
  }
}

export type PodwrightErrorOptions = ErrorOptions & {
  readonly remedy?: string;
  readonly problems?: readonly FieldProblem[];
};

/** The message of anything thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Anything thrown, as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** The first of that kind among an error and its causes. */
export function causeOf<T extends Error>(error: unknown, kind: abstract new (...args: never[]) => T): T | undefined {
  for (let link = error; link instanceof Error && link.cause !== link; link = link.cause) {
    if (link instanceof kind) return link;
  }
  return undefined;
}
