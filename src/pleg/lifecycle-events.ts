import { EventChannel } from "../base/event-channel.ts";
import type { PodUid } from "../base/ids.ts";
import type { Recorder } from "../journal/entry.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { describeEvent, eventData } from "./event-text.ts";
import { type ContainerEvent, observationOf, type PodLifecycleEvent } from "./events.ts";
import type { PodRecord } from "./pod-records.ts";

/** A delivered event, with its journal entry. */
export interface DeliveredEvent extends PodLifecycleEvent {
  readonly entry: number;
  /** The entry's message, one clause. */
  readonly message: string;
}

/** The reader needs only the newest events of a pod: each event makes it sync the whole pod. */
const mostOwed = 8;

/** Records the changes that inspections find, and sends them to the sync loop. Events that find the channel full are retried. */
export class LifecycleEvents {
  readonly channel: EventChannel<DeliveredEvent>;
  readonly #journal: Recorder;
  readonly #undelivered = new Map<PodUid, DeliveredEvent[]>();
  #discarded = 0;

  constructor(journal: Recorder, capacity: number) {
    this.#journal = journal;
    this.channel = new EventChannel(capacity);
  }

  /** Events that found the channel full so far. They were retried. */
  get discarded(): number {
    return this.#discarded;
  }

  /** Writes an event into the journal. @param before the pod's previous record */
  record(event: ContainerEvent, status: PodStatus, before: PodRecord | undefined): DeliveredEvent {
    const pod = {
      namespace: status.namespace || (before?.namespace ?? ""),
      name: status.name || (before?.name ?? ""),
      uid: event.uid,
    };
    const message = describeEvent(event, status);
    const entry = this.#journal.record({
      kind: "observation",
      what: observationOf(event),
      message,
      pod,
      ...(event.container === "" ? {} : { container: event.container }),
      ...eventData(event, status),
    });
    return { ...event, entry, message };
  }

  /** Sends the pod's events, after those still awaiting a retry. */
  deliver(uid: PodUid, events: readonly DeliveredEvent[]): void {
    const owed = [
      ...(this.#undelivered.get(uid) ?? []),
      ...events.filter((event) => event.type !== "ContainerChanged"),
    ];
    while (owed[0] !== undefined && this.channel.offer(owed[0])) owed.shift();
    if (owed.length === 0) {
      this.#undelivered.delete(uid);
      return;
    }
    if (!this.#undelivered.has(uid)) {
      this.#discarded++;
      this.#journal.record({
        kind: "note",
        what: "EventDiscarded",
        message: `the event channel is full (${this.channel.length}): events of pod ${uid} are retried`,
      });
    }
    this.#undelivered.set(uid, owed.slice(-mostOwed));
  }

  /** Retries the pod's events. */
  redeliver(uid: PodUid): void {
    if (this.#undelivered.has(uid)) this.deliver(uid, []);
  }
}

/** For a requested inspection that found no change. */
export function podSync(uid: PodUid): DeliveredEvent {
  return { type: "PodSync", uid, id: "", container: "", entry: 0, message: "" };
}
