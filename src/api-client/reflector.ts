import * as z from "zod";
import { eitherSignal } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import { ApiDecodeError, ApiError, askedPauseMs, isExpired } from "./api-error.ts";
import type { ApiClient } from "./client.ts";
import { type ApiObject, foreignKind, misfit, type Query, type Resource, withoutManagedFields } from "./resource.ts";
import { Collected, keyOf, nameOf, uidOf, versionOf } from "./collected.ts";
import type { WatchNews } from "./watch-news.ts";
import { watchEvents } from "./watch-stream.ts";

/** What to keep up with. */
export interface ReflectorTarget<T extends ApiObject> {
  /** For logs and waits: `pods of this node`. */
  readonly name: string;
  readonly resource: Resource<T>;
  readonly namespace?: string;
  readonly fieldSelector?: string;
}

/** Takes what there is; must not throw. */
export interface ReflectorHandler<T extends ApiObject> {
  /**
   * Replaces all objects.
   * @param unread UIDs of further objects that have never been decodable
   */
  replaced(objects: readonly T[], unread: readonly string[]): void;
  changed(type: "ADDED" | "MODIFIED" | "DELETED", object: T): void;
  /** An object that could never be read is gone. */
  unreadGone?(uid: string): void;
}

export interface ReflectorDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Of all watches of this API server together. */
  readonly news: WatchNews;
}

/** Objects of one page of a list. */
const pageSize = 500;
/** The server ends a watch after 5 to 10 minutes, as clients of Kubernetes ask it to. */
const watchSeconds = 300;
/** Servers send a bookmark about every minute; a stream that is silent for longer is reopened. */
const silentLimitMs = 3 * 60_000;
/** A watch that lived for so long after it was answered was a good one: what fails next is a first failure. */
const goodWatchMs = 1000;
/** What a watch begins with comes at once. */
const initialSilenceMs = 30_000;
const firstDelayMs = 800;
/** A node never requests that more often than it sends heartbeats. */
const longestDelayMs = 10_000;

const List = z.looseObject({
  kind: z.string().nullish(),
  metadata: z.looseObject({ resourceVersion: z.string(), continue: z.string().nullish() }),
  items: z.array(z.unknown()).nullish(),
});

/** The stream was silent for too long: perhaps the peer is gone. */
class SilentStream extends Error {}

/** The server no longer has the resource version to continue from. */
class RestoredStore extends Error {}

/** How long to wait after so many failures in a row, ×1 to ×2. Pure. */
export function reflectorDelayMs(failures: number, uniform: number): number {
  return Math.min(firstDelayMs * 2 ** (failures - 1), longestDelayMs) * (1 + uniform);
}

/**
 * Lists and watches a collection of the API: gets all of it (by a watch with initial events if the server supports it,
 * otherwise by a paged list), then watches from there. A closed watch continues from its last version; only when the
 * server has dropped that version (410), is silent, was restored, or sent something undecodable, everything is
 * relisted.
 */
export class Reflector<T extends ApiObject> {
  readonly #deps: ReflectorDependencies;
  readonly #target: ReflectorTarget<T>;
  readonly #handler: ReflectorHandler<T>;
  /** What there is, as it could last be read. */
  #known = new Map<string, T>();
  /** Undefined: everything has to be taken (again). */
  #version: string | undefined;
  /** Ends the watch that lives. */
  #stream: AbortController | undefined;
  #pages = true;
  #streamsInitially = true;
  /** When the server began to answer the watch that lives, monotonic milliseconds. */
  #answeredMs: number | undefined;
  /** Tries in a row that came to nothing at once: each waits longer than the one before. */
  #failures = 0;
  /** Tries in a row that did not end as they should, since a watch last was a good one. */
  #problems = 0;
  /** Since a watch last was a good one, the server has said that it forgot the place. */
  #wasForgotten = false;

  constructor(deps: ReflectorDependencies, target: ReflectorTarget<T>, handler: ReflectorHandler<T>) {
    this.#deps = deps;
    this.#target = target;
    this.#handler = handler;
  }

  /** Keeps up until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    using _restored = this.#deps.news.onStoreRestored(() => {
      this.#version = undefined;
      this.#stream?.abort(new RestoredStore("the API server was restored to an earlier state"));
    });
    while (!signal.aborted) await this.#keepUp(signal);
    this.#deps.news.ended(this.#target);
  }

  /** One watch until its end, and the delay before the next. */
  async #keepUp(signal: AbortSignal): Promise<void> {
    const { clock, random, news } = this.#deps;
    this.#answeredMs = undefined;
    let problem: unknown;
    try {
      if (this.#version === undefined && !this.#streamsInitially) await this.#list(signal);
      await this.#watch(signal);
    } catch (error) {
      problem = error;
    }
    if (signal.aborted) return;
    // A delay that the server requested does not show that the server is unhealthy.
    const lived = this.#answeredMs !== undefined && clock.monotonic() - this.#answeredMs >= goodWatchMs;
    const isFirstAnswer = this.#isForgottenAnew(problem, lived);
    const calm = this.#isCalm(problem);
    if (calm || lived) this.#problems = 0;
    if (!calm) this.#problems++;
    if (isFirstAnswer) this.#failures = 0;
    const short = lived ? 0 : ++this.#failures;
    if (lived) this.#failures = 0;
    if (calm && lived) return;
    const askedMs = askedPauseMs(problem);
    const delayMs = Math.max(reflectorDelayMs(Math.max(1, short), random.uniform()), askedMs);
    if (!calm) news.failed(this.#target, problem, this.#problems, delayMs);
    // Such watches deliver nothing, however well each of them ends.
    else if (!lived) news.failed(this.#target, new Error("the server ends the watch immediately"), short, delayMs);
    await news.pause(this.#target, { delayMs, askedMs }, signal);
  }

  /**
   * After a long outage the server has dropped every version. It answers, so the next request does not wait like one
   * without an answer. (If it keeps dropping versions, requests become less frequent.)
   */
  #isForgottenAnew(problem: unknown, lived: boolean): boolean {
    const isForgotten = this.#version !== undefined && isExpired(problem);
    const isNew = isForgotten && !this.#wasForgotten;
    this.#wasForgotten = isForgotten || (this.#wasForgotten && !lived);
    return isNew;
  }

  /** Judges an end: true for a normal one. Otherwise notes what must be done differently. */
  #isCalm(problem: unknown): boolean {
    if (problem === undefined) return true;
    if (problem instanceof SilentStream || problem instanceof RestoredStore) {
      if (problem instanceof SilentStream && this.#version === undefined) this.#streamsInitially = false;
      this.#version = undefined;
      return true;
    }
    if (isExpired(problem) || problem instanceof ApiDecodeError) this.#version = undefined;
    const refused = problem instanceof ApiError && (problem.code === 400 || problem.code === 422);
    // Servers that don't have it, or have it turned off, say that the request is invalid.
    if (refused && this.#version === undefined) this.#streamsInitially = false;
    return false;
  }

  async #list(signal: AbortSignal): Promise<void> {
    const collected = new Collected(this.#known);
    let next: string | undefined;
    let version: string;
    try {
      do {
        const query: Query = { ...this.#selector(), limit: this.#pages ? pageSize : undefined, continue: next };
        const page = List.safeParse(await this.#deps.client.list(this.#call(query, signal)));
        if (!page.success) {
          const problem = misfit("the answer", page.error);
          throw new ApiDecodeError(`the API server's response is not a list of ${this.#target.name}: ${problem}`);
        }
        const { kind } = page.data;
        if (kind && kind !== "List" && kind !== `${this.#target.resource.kind}List`) {
          throw new ApiDecodeError(`the list of ${this.#target.name} is a ${kind}`);
        }
        for (const item of page.data.items ?? []) {
          const value = withoutManagedFields(item);
          collected.set(value, this.#decode(value));
        }
        next = page.data.metadata.continue || undefined;
        version = page.data.metadata.resourceVersion;
      } while (next !== undefined);
    } catch (error) {
      // The pages were forgotten while they were read: then all in one.
      if (isExpired(error)) this.#pages = false;
      throw error;
    }
    this.#version = version;
    this.#replaced(collected);
  }

  #replaced({ objects, unread }: Collected<T>): void {
    this.#known = objects;
    this.#handler.replaced([...objects.values()], unread);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, client, random, news } = this.#deps;
    const { name } = this.#target;
    const initial = this.#version === undefined ? new Collected(this.#known) : undefined;
    const query: Query = {
      ...this.#selector(),
      watch: true,
      allowWatchBookmarks: true,
      timeoutSeconds: Math.round(watchSeconds * (1 + random.uniform())),
      ...(initial === undefined
        ? { resourceVersion: this.#version }
        : { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan", resourceVersion: "" }),
    };
    const silence = new AbortController();
    this.#stream = silence;
    using either = eitherSignal(signal, silence.signal);
    let timer: Disposable | undefined;
    let good: Disposable | undefined;
    const restart = (): void => {
      timer?.[Symbol.dispose]();
      const limitMs = this.#version === undefined ? initialSilenceMs : silentLimitMs;
      timer = clock.timer(`watch events of the ${name}`, limitMs, () => silence.abort(new SilentStream("silent")));
    };
    try {
      const body = await client.watch(this.#call(query, either.signal));
      this.#answeredMs = clock.monotonic();
      good = clock.timer(`the watch of the ${name} to prove stable`, goodWatchMs, () => news.answered(this.#target));
      restart();
      await this.#follow(initial, heard(body, restart));
    } finally {
      good?.[Symbol.dispose]();
      timer?.[Symbol.dispose]();
      // Whatever ended it, the stream is of no use any more.
      silence.abort(new SilentStream("over"));
    }
  }

  /** @param initial collects what the stream begins with; undefined when that is known */
  async #follow(initial: Collected<T> | undefined, body: AsyncIterable<Uint8Array>): Promise<void> {
    let collecting = initial;
    for await (const event of watchEvents(`watch of ${this.#target.name}`, body)) {
      if (event.type === "BOOKMARK") {
        if (collecting !== undefined) {
          // A server that does not know how to begin with everything never says that this was all.
          if (!event.endsInitialEvents) return void (this.#streamsInitially = false);
          this.#replaced(collecting);
          collecting = undefined;
        }
        this.#version = event.resourceVersion;
        continue;
      }
      const object = this.#decode(event.object);
      if (collecting !== undefined) {
        if (event.type === "DELETED") collecting.delete(event.object);
        else collecting.set(event.object, object);
        continue;
      }
      this.#version = versionOf(event.object) ?? this.#version;
      if (object !== undefined) this.#changed(event.type, object);
      else if (event.type === "DELETED") this.#goneUnread(event.object);
    }
    // The server never ends such a stream before its first part is over: it does not know how.
    if (collecting !== undefined) this.#streamsInitially = false;
  }

  #changed(type: "ADDED" | "MODIFIED" | "DELETED", object: T): void {
    if (type === "DELETED") this.#known.delete(keyOf(object));
    else this.#known.set(keyOf(object), object);
    this.#handler.changed(type, object);
  }

  /** The end of an object is its end, whether its last state can be read or not. */
  #goneUnread(value: unknown): void {
    const uid = uidOf(value);
    const known = this.#known.get(nameOf(value) ?? "");
    if (known !== undefined && known.metadata.uid === uid) this.#changed("DELETED", known);
    else if (uid !== undefined) this.#handler.unreadGone?.(uid);
  }

  /**
   * An undecodable object is reported, and does not hide the others.
   * @throws ApiDecodeError when it cannot be identified: an existing object must not count as deleted
   */
  #decode(value: unknown): T | undefined {
    const { decode, kind } = this.#target.resource;
    try {
      const foreign = foreignKind(value, kind);
      if (foreign !== undefined) throw new ApiDecodeError(`${kind}: it is a ${foreign}`);
      return decode(value, this.#known.get(nameOf(value) ?? ""));
    } catch (error) {
      const name = nameOf(value)?.replace(/^\//u, "");
      if (name === undefined) throw new ApiDecodeError(`one of the ${this.#target.name} has no name`);
      this.#deps.log.warn("cannot decode an API object", {
        what: this.#target.name,
        name,
        error: errorMessage(error),
      });
      return undefined;
    }
  }

  #selector(): Query {
    return { fieldSelector: this.#target.fieldSelector };
  }

  #call(query: Query, signal: AbortSignal) {
    const { resource, namespace } = this.#target;
    return { lane: "objects", resource, place: { namespace }, query, signal } as const;
  }
}

async function* heard(body: AsyncIterable<Uint8Array>, onBytes: () => void): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    yield chunk;
    // Once it was taken: by then it is known whether the stream still begins.
    onBytes();
  }
}
