/**
 * The pauses between tries of upstream's operations on volumes and plugins (goroutinemap/exponentialbackoff), in milliseconds: after the
 * first failure, and at most. Each is twice as long as the one before.
 */
const operationRetry = { firstMs: 500, longestMs: 122_000 } as const;

/**
 * The pause before the next try, ms. Pure.
 * @param failures the number of failures before the last one
 */
export function operationRetryMs(failures: number, longestMs: number = operationRetry.longestMs): number {
  return Math.min(operationRetry.firstMs * 2 ** failures, longestMs);
}
