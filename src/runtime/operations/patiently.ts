import { delayedSignal } from "../../base/abort.ts";
import type { Clock } from "../../ports/clock.ts";
import type { RpcCallOptions } from "../../ports/rpc.ts";

const patienceMs = 10_000;

/**
 * Creates something in the runtime. A cancellation does not abort the call at once: the runtime would continue
 * unobserved, or leave half of it. Creating takes tenths of a second, so the canceler waits for its end, but not for a
 * runtime that hangs.
 */
export async function patiently<T>(
  clock: Clock,
  what: string,
  signal: AbortSignal,
  work: (options: RpcCallOptions) => Promise<T>,
): Promise<T> {
  using patient = delayedSignal(clock, `${what} that was canceled`, signal, patienceMs);
  return await work({ signal: patient.signal });
}
