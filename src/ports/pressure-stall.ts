/** How much of the machine's work waits for the machine itself. */
export interface PressureStall {
  /**
   * Total milliseconds since boot during which some task was stalled on CPU or disk; undefined if unknown. Never
   * rejects.
   */
  stalledMs(): Promise<number | undefined>;
}
