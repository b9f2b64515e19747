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
  /** The process that holds the lock at this moment; undefined when nobody does, or when it can't be told. */
  holder(path: string): Promise<number | undefined>;
}
