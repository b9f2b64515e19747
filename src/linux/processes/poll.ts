import { addressOf, openCLibrary } from "./c-library.ts";

/** Events of poll(2). */
export const pollEvents = { readable: 1, priority: 2 } as const;

/** A count, and a timeout in ms. */
const [one, atOnce] = [1n, 0];

/**
 * Asks by poll(2) whether an open file has an event or an error: some microseconds, and no wait.
 * @returns undefined: Node.js cannot call C functions
 */
export function polled(descriptor: number, events: number): (() => boolean) | undefined {
  try {
    const poll = openCLibrary()("poll", ["uint64", "uint64", "int32"], "int32");
    // struct pollfd: int fd; short events, revents.
    const request = new Int32Array([descriptor, 0]);
    new Int16Array(request.buffer)[2] = events;
    const address = addressOf(request);
    // Also if poll(2) fails, and while the array is referenced.
    return () => poll(address, one, atOnce) !== 0 || request.length === 0;
  } catch {
    return undefined;
  }
}
