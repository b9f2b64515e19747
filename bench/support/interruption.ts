/** What must not outlast an interrupted bench, in the order in which it began. */
const open = new Set<() => Promise<void>>();

/**
 * Calls back when the bench is interrupted, after what began earlier; the process ends after the last. Dispose of the
 * result when there is nothing to clean up any more.
 */
export function onInterruption(cleanUp: () => Promise<void>): Disposable {
  open.add(cleanUp);
  return { [Symbol.dispose]: () => void open.delete(cleanUp) };
}

async function end(): Promise<never> {
  // The measurement goes on meanwhile, and fails: what it measures is being removed.
  process.on("uncaughtException", () => {});
  for (const cleanUp of open) {
    await cleanUp().catch((error: unknown) => console.error("after the interruption:", error));
  }
  process.exit(130);
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void end());
