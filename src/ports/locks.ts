/**
 * Locks between processes of this machine. A lock dies with its holder, however that ends, so a crash never leaves one
 * behind.
 */
export interface Locks {
  /**
   * Takes the exclusive lock that `path` names (an absolute path of a file that may be created for it) without waiting.
   * Undefined when another process holds it; dispose of the result to give it back.
   */
  tryLock(path: string): Promise<Disposable | undefined>;
  /**
   * {@link tryLock} for a file that only podwright locks: it is removed when the lock is released. A holder that is
   * killed leaves it for the next one.
   */
  tryOwnLock(path: string): Promise<Disposable | undefined>;
  /** The current holder of the lock; undefined when free, or unknown. */
  holder(path: string): Promise<number | undefined>;
}
