/** A message of the kernel's. */
export interface KernelLine {
  /** Grows by one with each message since the machine was booted. */
  readonly sequence: number;
  /** One line without time and level; empty of the mark with which {@link KernelLog.follow} begins. */
  readonly text: string;
}

/** What the kernel says. */
export interface KernelLog {
  /**
   * The messages of the kernel itself, until the signal aborts; what programs write there is left out. They begin with an
   * empty one that has the number of the last message that was passed over.
   * @param after the number of a message: those that came later go first, as far as they are still there. Undefined: from now on
   * @throws FileError when it can't be read
   */
  follow(after: number | undefined, signal: AbortSignal): AsyncIterable<KernelLine>;
}
