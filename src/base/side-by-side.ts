/**
 * Runs two works concurrently. Settles when both have ended, so that nothing continues after a failure.
 * @throws the first one's error before the second's
 */
export async function bothEnded<A, B>(first: Promise<A>, second: B | Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([first, second]);
  return [await first, await second];
}

/** Waits for all; then throws what failed, together. */
export async function settleAll(what: string, work: readonly Promise<void>[]): Promise<void> {
  const failures = (await Promise.allSettled(work)).filter((result) => result.status === "rejected");
  if (failures.length === 1) throw failures[0]?.reason;
  if (failures.length > 1) {
    const reasons = failures.map((failure) => failure.reason as Error);
    throw new AggregateError(reasons, `${what}: ${reasons.map((reason) => reason.message).join("; ")}`);
  }
}

/**
 * Works on the items in order, at most so many concurrently. After a failure no more items are started; the error is
 * thrown when running work has ended.
 */
export async function eachOf<T>(items: Iterable<T>, atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = generate(items);
  const worker = async (): Promise<void> => {
    // All take from the one generator, which is over for all of them when one leaves its loop by a failure.
    for (const item of queue) await work(item);
  };
  const outcomes = await Promise.allSettled(Array.from({ length: atOnce }, worker));
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}

function* generate<T>(items: Iterable<T>): Generator<T> {
  yield* items;
}
