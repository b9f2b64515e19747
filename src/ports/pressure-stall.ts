/** How much of the machine's work waits for the machine itself. */
export interface PressureStall {
  /**
   * For how many milliseconds in all, since the machine was started, some work was ready to go on and waited for a
   * processor or for the disk; undefined when that is not known. Never rejects.
   */
  stalledMs(): Promise<number | undefined>;
}
