import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { type Cri, CriError } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import { discoverRuntime, type RuntimeInfo } from "../runtime-service/features.ts";

const firstPauseMs = 250;
const longestPauseMs = 10_000;
/** Interval of repeating the log line while the runtime is away. */
const remindMs = 5 * 60_000;

/**
 * Queries the runtime's version until it responds, because it may still be starting. Never stops waiting, and logs the
 * wait.
 * @throws PodwrightError if it responds but is unusable, or the signal's reason
 */
export async function waitForRuntime(
  cri: Cri,
  clock: Clock,
  log: Logger,
  endpoint: string,
  signal: AbortSignal,
): Promise<RuntimeInfo> {
  const began = clock.monotonic();
  let pauseMs = firstPauseMs;
  let reported: { readonly problem: string; readonly atMs: number } | undefined;
  for (;;) {
    try {
      const runtime = await discoverRuntime(cri, signal);
      if (reported !== undefined) {
        log.info("container runtime answers", { endpoint, waitedMs: Math.round(clock.monotonic() - began) });
      }
      return runtime;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof CriError)) throw error;
      const problem = errorMessage(error);
      const now = clock.monotonic();
      if (reported === undefined || reported.problem !== problem || now - reported.atMs >= remindMs) {
        log.warn("container runtime does not answer; waiting for it", { endpoint, error: problem });
        reported = { problem, atMs: now };
      }
    }
    await clock.sleep("the container runtime to answer", pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }
}
