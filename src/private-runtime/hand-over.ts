import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";

/** Another process has what this one needs to begin. */
export class HeldError extends PodwrightError {
  /** Undefined if unknown. */
  readonly pid: number | undefined;

  constructor(message: string, pid: number | undefined, remedy: string) {
    super(ExitCode.environment, message, { remedy });
    this.name = "HeldError";
    this.pid = pid;
  }
}

/** From the moment a supervisor starts the new process until the old one has ended; one that stays is another's. */
const handOverMs = 5000;
const pollMs = 50;

/**
 * Takes what another process may have: a supervisor that restarts podwright may start the new one before the old one has ended.
 * Says once what it waits for.
 * @param what `the lock of the state directory`
 * @throws HeldError of the last try when it is still held after 5 s; the signal's reason
 */
export async function whenFree<T>(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  what: string,
  take: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const deadline = clock.monotonic() + handOverMs;
  for (let isReported = false; ; isReported = true) {
    try {
      return await take();
    } catch (error) {
      if (!(error instanceof HeldError) || clock.monotonic() >= deadline) throw error;
      if (!isReported) {
        log.info("another process uses the state directory; waiting for its exit", {
          what,
          pid: error.pid,
          reason: error.message,
          forAtMostMs: handOverMs,
        });
      }
    }
    await clock.sleep(what, pollMs, signal);
  }
}
