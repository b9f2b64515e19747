export interface CommandOutputOptions {
  /** The program is killed after so long. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * A program's output, standard error included, as it arrives: read only as fast as it is consumed. Ends with the
 * program, whatever its exit code; leaving the loop kills it. Rejects when it cannot be started, exceeds its time limit
 * or the signal aborts.
 */
export type CommandOutput = (
  program: string,
  arguments_: readonly string[],
  options: CommandOutputOptions,
) => AsyncIterable<Uint8Array>;
