import { errorMessage } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import type { Clock } from "../ports/clock.ts";
import { type Cri, isCriError } from "../ports/cri.ts";
import { type ContainerEventResponse, ContainerEventType } from "../ports/gen/runtime/v1/api_pb.js";
import type { Logger } from "../ports/log.ts";
import { Label } from "../runtime/labels.ts";
import type { Pleg } from "./pleg.ts";

/** A stream that has not failed for this long is taken to work; runtimes without events refuse it at once. */
const settledMs = 1_000;
const reconnectMinMs = 200;
/** Soon: asking a local socket costs next to nothing, and until then every pod is listed each second. */
const reconnectMaxMs = 2_000;
/** A runtime that has no events may be replaced by one that has: ask again now and then. */
const unsupportedRetryMs = 60_000;

/**
 * The runtime's own events (CRI GetContainerEvents) as hints for PLEG. Of their payload only ids are used, to ask about
 * them: the rest may be stale, repeated, out of order, or another subscriber may have taken it. The stream is always
 * drained, because a runtime may stall on a subscriber that does not read; a hint costs nothing, so reading never waits.
 *
 * Only how soon to look depends on the event: what ended is looked at at once. What was created or started was so by a
 * worker, which looks itself when it is done; looking at each step of it would cost more than the start itself.
 *
 * Which way pods are watched is chosen by what works: while the stream is open PLEG lists seldom, whenever it is not
 * (unsupported, cut, runtime gone) PLEG lists every second.
 */
export async function runEvented(cri: Cri, pleg: Pleg, clock: Clock, log: Logger, signal: AbortSignal): Promise<void> {
  let delayMs = reconnectMinMs;
  while (!signal.aborted) {
    let received = 0;
    let settled = false;
    const works = (): void => {
      if (settled) return;
      settled = true;
      delayMs = reconnectMinMs;
      pleg.setEvented(true);
    };
    let failure: unknown;
    {
      using _settle = clock.timer("runtime event stream to settle", settledMs, works);
      try {
        for await (const event of cri.runtime.getContainerEvents({}, { signal })) {
          if (received++ === 0) works();
          const uid = eventPod(event);
          if (uid === undefined) continue;
          if (isEnd(event)) pleg.hint(podUid(uid));
          else pleg.hintThatCanWait(podUid(uid), { sandbox: event.podSandboxStatus?.id ?? "", id: event.containerId });
        }
      } catch (error) {
        failure = error;
      }
    }
    if (signal.aborted) return;
    pleg.setEvented(false);
    const unsupported = isCriError(failure, "Unimplemented");
    if (!unsupported) {
      log.info("runtime event stream ended", { error: errorMessage(failure ?? "closed by the runtime") });
    }
    await clock
      .sleep("reconnect to runtime events", unsupported ? unsupportedRetryMs : delayMs, signal)
      .catch(() => {});
    delayMs = Math.min(delayMs * 2, reconnectMaxMs);
  }
}

function isEnd({ containerEventType: type }: ContainerEventResponse): boolean {
  return type !== ContainerEventType.CONTAINER_CREATED_EVENT && type !== ContainerEventType.CONTAINER_STARTED_EVENT;
}

function eventPod(event: ContainerEventResponse): string | undefined {
  const labels = event.podSandboxStatus?.labels ?? event.containersStatuses[0]?.labels;
  const uid = event.podSandboxStatus?.metadata?.uid || labels?.[Label.podUid];
  return uid === undefined || uid === "" ? undefined : uid;
}
