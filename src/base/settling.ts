import { TransientList } from "./transient-list.ts";

/** What listens to each promise that has not settled yet, in the order in which it began to. */
const listeners = new WeakMap<Promise<unknown>, TransientList<() => void>>();

/**
 * Calls `listener` once the promise settles, until the result is disposed of. What `then` adds to a promise stays until it
 * settles: repeated waits for something absent, such as a driver, would fill the memory.
 */
export function onSettled(promise: Promise<unknown>, listener: () => void): Disposable {
  return (listeners.get(promise) ?? listenTo(promise)).add(listener);
}

function listenTo(promise: Promise<unknown>): TransientList<() => void> {
  const all = new TransientList<() => void>();
  listeners.set(promise, all);
  const end = (): void => {
    listeners.delete(promise);
    for (const listener of all) listener();
    all.clear();
  };
  promise.then(end, end);
  return all;
}

/** The number of those that listen, for tests of what waits leave. */
export function listening(promise: Promise<unknown>): number {
  return listeners.get(promise)?.size ?? 0;
}

/**
 * Whether the promise settles before the limit calls back: a race that leaves nothing with the promise.
 * @param limit begins to listen to what ends the wait
 */
export async function settlesBefore(
  promise: Promise<unknown>,
  limit: (over: () => void) => Disposable,
): Promise<boolean> {
  const first = Promise.withResolvers<boolean>();
  using _settled = onSettled(promise, () => first.resolve(true));
  using _limit = limit(() => first.resolve(false));
  return await first.promise;
}
