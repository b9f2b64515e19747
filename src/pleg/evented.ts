import { eitherSignal } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { Clock } from "../ports/clock.ts";
import { type Cri, isCriError } from "../ports/cri.ts";
import { type ContainerEventResponse, ContainerEventType } from "../ports/gen/runtime/v1/api_pb.js";
import type { Logger } from "../ports/log.ts";
import { Label } from "../runtime/config/labels.ts";
import type { Pleg } from "./pleg.ts";

/** Open for so long without a word, a stream is believed to have nothing to tell. */
const silentMs = 10_000;
const reconnectMinMs = 200;
/** Soon: asking a local socket costs next to nothing, and until then every pod is listed each second. */
const reconnectMaxMs = 2_000;
/** A runtime that has no events may be replaced or configured to have them: ask again now and then. */
const unsupportedRetryMs = 60_000;

/**
 * The runtime's own events (CRI GetContainerEvents) as hints for PLEG. Of their payload only ids are used, to ask about
 * them: the rest may be stale, repeated, out of order, or another subscriber may have taken it. The stream is always
 * drained, because a runtime may stall on a subscriber that does not read; a hint costs nothing, so reading never waits.
 *
 * Only how soon to look depends on the event: what stopped is looked at at once. What was created, started or removed was
 * so by a worker, which looks itself when it is done; looking at each step of it would cost more than the start itself.
 *
 * Which way pods are watched is chosen by what works: while the stream can be relied on ({@link EventTrust}) PLEG lists
 * seldom, whenever not (unsupported, turned off, cut, runtime gone) PLEG lists every second.
 */
export async function runEvented(cri: Cri, pleg: Pleg, clock: Clock, log: Logger, signal: AbortSignal): Promise<void> {
  let delayMs = reconnectMinMs;
  let told: string | undefined;
  while (!signal.aborted) {
    const beganMs = clock.monotonic();
    const { failure, worked } = await follow(cri, pleg, clock, signal);
    if (signal.aborted) return;
    pleg.setEvents("none");
    if (clock.monotonic() - beganMs >= silentMs) [delayMs, told] = [reconnectMinMs, undefined];
    const end = endOf(failure, worked);
    // As long as it goes on to end in the same way, once is enough.
    if (end.message !== told) log.info(end.message, end.fields);
    told = end.message;
    const pauseMs = end.isFinal ? unsupportedRetryMs : delayMs;
    await pause(pleg, clock, pauseMs, signal);
    delayMs = Math.min(delayMs * 2, reconnectMaxMs);
  }
}

/** Reads one stream to its end. `worked`: it gave an event, or stayed open for a while. */
async function follow(
  cri: Cri,
  pleg: Pleg,
  clock: Clock,
  signal: AbortSignal,
): Promise<{ readonly failure: unknown; readonly worked: boolean }> {
  let worked = false;
  const works = (stream: "silent" | "heard"): void => {
    worked = true;
    pleg.setEvents(stream);
  };
  pleg.setEvents("open");
  using silence = clock.timer("the first event of the runtime's event stream", silentMs, () => works("silent"));
  let isHeard = false;
  try {
    for await (const event of cri.runtime.getContainerEvents({}, { signal })) {
      if (!isHeard) works("heard");
      isHeard = true;
      silence[Symbol.dispose]();
      const uid = eventPod(event);
      if (uid !== undefined) tell(pleg, podUid(uid), event);
    }
  } catch (error) {
    return { failure: error, worked };
  }
  return { failure: undefined, worked };
}

/** What is removed had ended before, mostly by the hands of somebody who looks afterwards. */
function tell(
  pleg: Pleg,
  uid: PodUid,
  { containerEventType: type, containerId: id, podSandboxStatus }: ContainerEventResponse,
) {
  switch (type) {
    case ContainerEventType.CONTAINER_CREATED_EVENT:
    case ContainerEventType.CONTAINER_STARTED_EVENT:
      return pleg.hintThatCanWait(uid, { sandbox: podSandboxStatus?.id ?? "", id });
    case ContainerEventType.CONTAINER_DELETED_EVENT:
      return pleg.hintThatCanWait(uid);
    case ContainerEventType.CONTAINER_STOPPED_EVENT:
      return pleg.hint(uid);
  }
}

interface StreamEnd {
  readonly message: string;
  readonly fields: Record<string, string>;
  /** The runtime has no events, as it is now: another try at once would end alike. */
  readonly isFinal: boolean;
}

function endOf(failure: unknown, worked: boolean): StreamEnd {
  const message = "runtime sends no events; relisting every second instead";
  if (isCriError(failure, "Unimplemented")) return { message, fields: { error: failure.message }, isFinal: true };
  if (failure === undefined && !worked) {
    const remedy = "on CRI-O, set enable_pod_events = true in [crio.runtime]";
    return { message, fields: { error: "the runtime closed the stream without an event", remedy }, isFinal: true };
  }
  const error = errorMessage(failure ?? "closed by the runtime");
  return { message: "runtime event stream ended", fields: { error }, isFinal: false };
}

/** A runtime that was away may come back as another one. */
async function pause(pleg: Pleg, clock: Clock, pauseMs: number, signal: AbortSignal): Promise<void> {
  const back = new AbortController();
  using either = eitherSignal(signal, back.signal);
  using _recovered = pleg.onRecovered(() => back.abort());
  await clock.sleep("reconnect to runtime events", pauseMs, either.signal).catch(() => {});
}

function eventPod(event: ContainerEventResponse): string | undefined {
  const labels = event.podSandboxStatus?.labels ?? event.containersStatuses[0]?.labels;
  const uid = event.podSandboxStatus?.metadata?.uid || labels?.[Label.podUid];
  return uid === undefined || uid === "" ? undefined : uid;
}
