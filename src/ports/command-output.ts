export interface CommandOutputOptions {
  /** The program is killed after so long. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * What a program prints, standard error included, as it comes: read only as fast as it is taken. Ends with the program,
 * whatever its exit code; leaving the loop kills it. Rejects when it can't be started, passes its time or the signal
 * aborts.
 */
export type CommandOutput = (
  program: string,
  arguments_: readonly string[],
  options: CommandOutputOptions,
) => AsyncIterable<Uint8Array>;
