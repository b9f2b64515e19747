/**
 * The pauses between tries of upstream's operations on volumes and plugins (goroutinemap/exponentialbackoff), in milliseconds: after the
 * first failure, and at most. Each is twice as long as the one before.
 */
export const operationRetry = { firstMs: 500, longestMs: 122_000 } as const;
