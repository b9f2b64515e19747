/**
 * Time. The only way for managers to read a clock or to wait; the simulator replaces it with a virtual one.
 */
export interface Clock {
  /** Wall clock in milliseconds since the Unix epoch: for people and for the API, never for ordering (it jumps). */
  now(): number;
  /** Milliseconds on a monotonic clock: for durations, deadlines and ordering within one run. */
  monotonic(): number;
  /**
   * Runs `callback` once, `delayMs` from now (0 means "soon", never synchronously). Disposing it before then
   * cancels it; disposing later does nothing.
   * @param name what is being waited for; shown by diagnostics, so that every wait has a name
   */
  timer(name: string, delayMs: number, callback: () => void): Disposable;
  /** Resolves after `delayMs`; rejects with the signal's reason as soon as `signal` aborts. */
  sleep(name: string, delayMs: number, signal?: AbortSignal): Promise<void>;
}
