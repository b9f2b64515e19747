/** A message of the kernel's. */
export interface KernelLine {
  /** Grows by one with each message since the machine was booted. */
  readonly sequence: number;
  /** Ms since the machine was booted, with fractions; 0 of the mark with which {@link KernelLog.follow} begins. */
  readonly atMs: number;
  /** One line without time and level; empty of the mark with which {@link KernelLog.follow} begins. */
  readonly text: string;
}

/** What the kernel says. */
export interface KernelLog {
  /**
   * The kernel's own messages, until the signal aborts, without those of programs. The first one is empty and has the
   * number of the last skipped message.
   * @param after the number of a message: later ones come first, if they still exist. Undefined: from now on
   * @throws FileError if the log cannot be read
   */
  follow(after: number | undefined, signal: AbortSignal): AsyncIterable<KernelLine>;
}
