import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";

/** Retry interval, e.g. for a port in use or a missing certificate. */
const retryMs = 5000;

/**
 * Serves an API as soon as possible, until the signal aborts. Failures are logged and retried: they keep no pod from
 * running.
 * @param what the name of the API, for the log
 */
export async function keepServing(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  what: string,
  signal: AbortSignal,
  serve: () => Promise<AsyncDisposable>,
): Promise<void> {
  let server: AsyncDisposable | undefined;
  while (server === undefined && !signal.aborted) {
    try {
      server = await serve();
    } catch (error) {
      log.error("cannot serve an API; retrying", { api: what, error: errorMessage(error), retryMs });
      await clock.sleep(`retry of serving ${what}`, retryMs, signal).catch(() => {});
    }
  }
  const end = Promise.withResolvers<void>();
  using _end = onAbort(signal, end.resolve);
  await end.promise;
  await server?.[Symbol.asyncDispose]();
}
