/** The parent that waits for this process's notifications, such as systemd (sd_notify(3)). */
export interface ServiceManager {
  /** Milliseconds without `WATCHDOG=1` after which it takes this process for hung and ends it; undefined: it does not watch. */
  readonly watchdogMs: number | undefined;
  /** CLOCK_MONOTONIC in microseconds, the clock of `MONOTONIC_USEC=`. */
  monotonicMicroseconds(): bigint;
  /** Sends assignments, as `READY=1`, in one message. Rejects when they can't be delivered. */
  notify(assignments: readonly string[]): Promise<void>;
}
