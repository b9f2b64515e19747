/**
 * The machine's login manager (systemd-logind): it announces a shutdown, and delays it for holders of inhibitor locks.
 */
export interface LoginManager {
  /** @throws Error when the system bus does not answer */
  connect(signal: AbortSignal): Promise<LoginSession>;
}

/** A connection to it. Every method rejects if the connection is lost, or without a response within seconds. */
export interface LoginSession extends Disposable {
  /** Maximum delay of a shutdown by a lock (InhibitDelayMaxSec), milliseconds. */
  inhibitDelayMaxMs(signal: AbortSignal): Promise<number>;
  /** Has it read its configuration files again, which it does a little later. */
  reloadConfiguration(signal: AbortSignal): Promise<void>;
  /** A shutdown has been announced and not been cancelled. */
  isPreparingForShutdown(signal: AbortSignal): Promise<boolean>;
  /** Delays a shutdown until the lock is disposed of; it outlives the connection, but not this process. */
  delayShutdown(who: string, why: string, signal: AbortSignal): Promise<Disposable>;
  /**
   * True when a shutdown is announced, false when it is cancelled, those since the connection was made included. Ends when the
   * connection or its lock is lost, and when the signal aborts. To be called once, after all else.
   */
  shutdowns(signal: AbortSignal): AsyncIterable<boolean>;
}
