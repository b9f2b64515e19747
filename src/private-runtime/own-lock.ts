import type { Clock } from "../ports/clock.ts";
import type { Locks } from "../ports/locks.ts";

export interface LockWait {
  /** Its name: `lock of the pod subnets`. */
  readonly what: string;
  readonly limitMs: number;
}

const retryMs = 50;

/** Takes a lock that another process has for a moment; undefined: it still has it when the time is over. */
export async function ownLockWithin(
  { clock, locks }: { readonly clock: Clock; readonly locks: Pick<Locks, "tryOwnLock"> },
  path: string,
  { what, limitMs }: LockWait,
  signal?: AbortSignal,
): Promise<Disposable | undefined> {
  const endMs = clock.monotonic() + limitMs;
  for (;;) {
    const lock = await locks.tryOwnLock(path);
    if (lock !== undefined || clock.monotonic() >= endMs) return lock;
    await clock.sleep(what, retryMs, signal);
  }
}
