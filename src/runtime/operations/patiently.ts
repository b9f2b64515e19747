import { delayedSignal } from "../../base/abort.ts";
import type { Clock } from "../../ports/clock.ts";
import type { RpcCallOptions } from "../../ports/rpc.ts";

const patienceMs = 10_000;

/**
 * Makes something in the runtime. Called off meanwhile it is not cut off at once: the runtime would go on for a while with
 * what nobody knows of, or leave half of it. That takes tenths of a second, so whoever calls it off waits for its end;
 * but not for a runtime that is stuck, as the pod would be as well.
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
