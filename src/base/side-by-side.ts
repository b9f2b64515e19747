/**
 * Work that is done side by side. Settles when both have ended, so that nothing goes on behind a failure's back.
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
