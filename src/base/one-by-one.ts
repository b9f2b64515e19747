import { errorMessage } from "./errors.ts";
import { shortList } from "./short-list.ts";

/** A message names so many different failures. */
const maxNamed = 10;

/**
 * Works on each item, one after the other; what fails for one is done for the others all the same. Rejects with the
 * signal's reason as soon as it aborts, and in the end with an error that names the failures.
 */
export async function oneByOne<T>(
  items: Iterable<T>,
  signal: AbortSignal,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  for (const item of items) {
    signal.throwIfAborted();
    try {
      await work(item);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(error);
    }
  }
  if (failures.length === 0) return;
  const messages = [...new Set(failures.map(errorMessage))];
  throw new AggregateError(failures, shortList(messages, maxNamed, "; "));
}
