import { eitherSignal } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { Clock } from "../ports/clock.ts";
import { type Cri, isCriError } from "../ports/cri.ts";
import { type ContainerEventResponse, ContainerEventType } from "../ports/gen/runtime/v1/api_pb.js";
import type { Logger } from "../ports/log.ts";
import { Label } from "../runtime/config/labels.ts";
import type { Pleg } from "./pleg.ts";

/** After this time without an event, an open stream is considered quiet. */
const silentMs = 10_000;
const reconnectMinMs = 200;
/** Short: connecting to a local socket is cheap, and until then every pod is listed each second. */
const reconnectMaxMs = 2_000;
/** A runtime without events may be replaced or reconfigured: retry periodically. */
const unsupportedRetryMs = 60_000;

/**
 * The runtime's own events (CRI GetContainerEvents) as hints for PLEG. Only IDs of their payload are used, to inspect
 * them: the rest may be stale, repeated, out of order, or consumed by another subscriber. The stream is always drained,
 * because a runtime may stall on a slow subscriber; hints are cheap, so reading never waits.
 *
 * The event only determines how soon to inspect: stops are inspected immediately. Creations, starts and removals come
 * from a worker, which inspects when it is done; inspecting at each step would cost more than the start itself.
 *
 * How pods are watched depends on what works: while the stream is reliable ({@link EventTrust}) PLEG relists rarely,
 * otherwise (unsupported, disabled, disconnected, runtime away) every second.
 */
export async function runEvented(cri: Cri, pleg: Pleg, clock: Clock, log: Logger, signal: AbortSignal): Promise<void> {
  let delayMs = reconnectMinMs;
  let reported: string | undefined;
  while (!signal.aborted) {
    const beganMs = clock.monotonic();
    const { failure, worked } = await follow(cri, pleg, clock, signal);
    if (signal.aborted) return;
    pleg.setEvents("none");
    if (clock.monotonic() - beganMs >= silentMs) [delayMs, reported] = [reconnectMinMs, undefined];
    const end = endOf(failure, worked);
    // While it keeps ending in the same way, one log line is enough.
    if (end.message !== reported) log.info(end.message, end.fields);
    reported = end.message;
    const pauseMs = end.isFinal ? unsupportedRetryMs : delayMs;
    await pause(pleg, clock, pauseMs, signal);
    delayMs = Math.min(delayMs * 2, reconnectMaxMs);
  }
}

/** Reads one stream to its end. `worked`: it sent an event, or stayed open for a while. */
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

/** A removed container had exited before, and its remover usually requests an inspection afterwards. */
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
  /** The runtime has no events in its current configuration: an immediate retry is pointless. */
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

/** A runtime that was away may return as another version. */
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
