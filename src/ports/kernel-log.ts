/** What the kernel says. */
export interface KernelLog {
  /**
   * The messages of the kernel itself from now on, one line each without time and level; ends when the signal aborts.
   * What programs write there is left out.
   * @throws FileError when it can't be read
   */
  follow(signal: AbortSignal): AsyncIterable<string>;
}
