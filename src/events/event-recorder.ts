import * as z from "zod";
import { ApiError, askedPauseMs, isApiError } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import { decoder, type Resource } from "../api-client/resource.ts";
import type { Pod } from "../api/pod.ts";
import { EventChannel } from "../base/event-channel.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { formatTime } from "../base/time.ts";
import { randomUuid } from "../base/uuid.ts";
import type { JournalEntry } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import { type CorrelatedEvent, EventCorrelator } from "./correlator.ts";
import { eventsOf, type NodeEvent } from "./entry-events.ts";

const Stored = z.object({ metadata: z.object({ name: z.string(), namespace: z.string().optional() }) });
const events: Resource<z.infer<typeof Stored>> = {
  base: "/api/v1",
  plural: "events",
  kind: "Event",
  decode: decoder(Stored, "Event"),
};

/** Events that wait for the server; further ones are dropped, and counted. */
const maxWaiting = 1000;
/** As client-go: the number and interval of retries before an event is dropped. */
const maxTries = 12;
const maxNames = 4096;
/** The maximum length of an object name (RFC 1123). */
const longestName = 253;
const retryMs = 10_000;
const behindMs = 40;

export interface EventRecorderDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly nodeName: string;
  /** A pod of this node. */
  readonly pod: (uid: PodUid) => Pod | undefined;
}

interface Waiting {
  readonly event: NodeEvent;
  readonly atMs: number;
}

/** Sends the journal's Events of pods and of the node to the API server (upstream's event recorder and broadcaster). */
export class EventRecorder {
  readonly #deps: EventRecorderDependencies;
  readonly #correlator = new EventCorrelator();
  readonly #queue = new EventChannel<Waiting>(maxWaiting);
  /** Names of stored Events by the correlator's keys. */
  readonly #names = new Map<string, string>();
  #lost = 0;
  #made = 0;

  constructor(deps: EventRecorderDependencies) {
    this.#deps = deps;
  }

  /** Sends the entries' Events as they arrive, until they end or the signal aborts. Never rejects. */
  async run(entries: AsyncIterable<JournalEntry>, signal: AbortSignal): Promise<void> {
    const about = { pod: undefined, container: undefined };
    this.#offer({ type: "Normal", reason: "Starting", message: "Starting kubelet.", ...about });
    await Promise.all([this.#read(entries), this.#send(signal)]);
  }

  async #read(entries: AsyncIterable<JournalEntry>): Promise<void> {
    for await (const entry of entries) {
      for (const event of eventsOf(entry)) this.#offer(event);
    }
  }

  #offer(event: NodeEvent): void {
    if (this.#queue.offer({ event, atMs: this.#deps.clock.now() })) return;
    if (this.#lost++ === 0) this.#deps.log.warn("dropping events: the API server does not accept them");
  }

  async #send(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waiting = await this.#queue.take(signal).catch(() => []);
      // Starts and pod statuses have priority: Events are for people.
      await this.#deps.clock.sleep("statuses to be sent before events", behindMs, signal).catch(() => {});
      for (const each of waiting) await this.#tell(each, signal);
      if (this.#lost > 0 && !signal.aborted) {
        this.#deps.log.info("API server accepts events again", { lost: this.#lost });
        this.#lost = 0;
      }
    }
  }

  async #tell({ event, atMs }: Waiting, signal: AbortSignal): Promise<void> {
    const correlated = this.#correlator.correlate(event, atMs);
    if (correlated === undefined) return;
    for (let tries = 1; !signal.aborted; tries++) {
      let waitMs: number;
      try {
        await this.#store(event, correlated, atMs, signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        const askedMs = askedPauseMs(error);
        // All others wait for this one: only when the server is away or throttles.
        if ((error instanceof ApiError && askedMs === 0) || tries === maxTries) {
          this.#deps.log.warn("event dropped", { reason: event.reason, error: errorMessage(error) });
          return;
        }
        if (askedMs > 0) this.#deps.log.info("API server throttles events", { retryMs: askedMs });
        waitMs = askedMs > 0 ? askedMs : retryMs;
      }
      await this.#deps.clock.sleep("retry of sending an event", waitMs, signal).catch(() => {});
    }
  }

  async #store(event: NodeEvent, correlated: CorrelatedEvent, atMs: number, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const namespace = (event.pod ?? event.claim)?.namespace ?? "default";
    const call = { lane: "events", resource: events, signal } as const;
    const name = this.#names.get(correlated.key);
    if (correlated.count > 1 && name !== undefined) {
      const { count, message } = correlated;
      try {
        const patch = { count, message, lastTimestamp: formatTime(atMs) };
        await client.patch({ ...call, place: { namespace, name } }, "merge", patch);
        return;
      } catch (error) {
        // Events expire after an hour. The new one continues the count.
        if (!isApiError(error, "NotFound")) throw error;
      }
    }
    const object = this.#object(event, correlated, namespace, atMs);
    const stored = await client.create({ ...call, place: { namespace } }, object);
    this.#names.set(correlated.key, stored.metadata.name);
    if (this.#names.size > maxNames) this.#names.delete([...this.#names.keys()][0] ?? "");
  }

  #object(event: NodeEvent, { message, count, firstMs }: CorrelatedEvent, namespace: string, atMs: number): object {
    const { nodeName, random } = this.#deps;
    const { pod, claim, type, reason, annotations } = event;
    // As client-go's names: the object's name and a unique number.
    const unique = (BigInt(Math.trunc(atMs)) * 1_000_000n + BigInt(this.#made++ % 1_000_000)).toString(16);
    const name = `${(pod ?? claim)?.name ?? nodeName}.${unique}`;
    const fieldPath = pod && this.#fieldPath(pod.uid, event.container);
    // `kubectl events --for` searches by the version, `kubectl describe node` by the name as UID.
    const ofNode = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
    const ofOther = claim === undefined ? ofNode : { apiVersion: "v1", kind: "PersistentVolumeClaim", ...claim };
    const involvedObject =
      pod === undefined
        ? ofOther
        : { apiVersion: "v1", kind: "Pod", ...pod, ...(fieldPath !== undefined && { fieldPath }) };
    return {
      apiVersion: "v1",
      kind: "Event",
      metadata: {
        name: name.length > longestName ? randomUuid(random) : name,
        namespace,
        ...(annotations && Object.keys(annotations).length > 0 && { annotations }),
      },
      involvedObject,
      ...{ type, reason, message, count },
      firstTimestamp: formatTime(firstMs),
      lastTimestamp: formatTime(atMs),
      source: { component: "kubelet", host: nodeName },
      reportingComponent: "kubelet",
      reportingInstance: nodeName,
    };
  }

  #fieldPath(uid: PodUid, container: string | undefined): string | undefined {
    const spec = this.#deps.pod(uid)?.spec;
    if (spec === undefined || container === undefined) return undefined;
    const lists = ["containers", "initContainers", "ephemeralContainers"] as const;
    const list = lists.find((each) => spec[each]?.some(({ name }) => name === container));
    return list && `spec.${list}{${container}}`;
  }
}
