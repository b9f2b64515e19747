import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { CriRuntimeService } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";

const periodMs = 5_000;
const answerLimitMs = 10_000;
/** Grace time for a deliberate restart, as by an upgrade. */
const patienceMs = 30_000;

export interface WatchDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly runtime: Pick<CriRuntimeService, "version">;
  /** Starts the private runtime when it does not run; rejects when it can't. */
  readonly ensure: (signal: AbortSignal) => Promise<unknown>;
}

/**
 * Restarts a private runtime that is gone and stays gone: nothing else manages it. Its pods kept running meanwhile.
 * Until the signal aborts; never rejects.
 */
export async function watchPrivateRuntime(
  { clock, log, runtime, ensure }: WatchDeps,
  signal: AbortSignal,
): Promise<void> {
  let answeredMs = clock.monotonic();
  while (!signal.aborted) {
    try {
      await clock.sleep("the next check of the private runtime", periodMs, signal);
      await runtime.version({}, { signal, timeoutMs: answerLimitMs });
      answeredMs = clock.monotonic();
    } catch (error) {
      if (signal.aborted || clock.monotonic() - answeredMs < patienceMs) continue;
      log.warn("private runtime exited; restarting it", { error: errorMessage(error) });
      await ensure(signal).catch((failure: unknown) => {
        log.error("cannot restart the private runtime", { error: errorMessage(failure) });
      });
    }
  }
}
