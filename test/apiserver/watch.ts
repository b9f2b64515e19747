import type { ApiError } from "./api-error.ts";
import type { ApiObject, Fields } from "./objects.ts";
import { apiVersionOf, type Resource } from "./resource.ts";
import type { Selector } from "./selectors.ts";
import type { Store, StoreEvent } from "./store.ts";

/** What a watch is to tell. */
export interface WatchScope {
  readonly resource: Resource;
  /** `""` for all namespaces. */
  readonly namespace: string;
  readonly selects: Selector;
  /** Tell only what changed after this revision; undefined: begin with what is there. */
  readonly since: number | undefined;
  readonly bookmarks: boolean;
  /** A watch list (KEP-3157): a bookmark says when all that was there is told. */
  readonly marksInitialEnd: boolean;
}

export type WatchEventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";

/** Where a watch tells what it sees. */
export interface WatchSink {
  readonly send: (type: WatchEventType, object: Fields) => void;
  /** @param abruptly as a broken connection */
  readonly end: (abruptly: boolean) => void;
}

/** A watch of one client. */
export class Watch {
  readonly scope: WatchScope;
  readonly #store: Store;
  readonly #sink: WatchSink;
  #unsubscribe: (() => void) | undefined;
  #bookmarkTimer: NodeJS.Timeout | undefined;
  #endTimer: NodeJS.Timeout | undefined;
  #isSilent = false;
  #toldRevision = 0;

  constructor(scope: WatchScope, store: Store, sink: WatchSink) {
    this.scope = scope;
    this.#store = store;
    this.#sink = sink;
  }

  /**
   * Tells what is there or what was missed, and from then on each change.
   * @throws ApiError 410 when what was missed is no longer known; nothing was told then
   */
  start(times: { readonly bookmarkMs: number; readonly timeoutMs: number }): void {
    const { resource, since, marksInitialEnd } = this.scope;
    if (since === undefined) {
      for (const object of this.#store.all(resource.storage)) if (this.#matches(object)) this.#send("ADDED", object);
      this.#toldRevision = this.#store.revision;
      if (marksInitialEnd) this.#sendBookmark({ "k8s.io/initial-events-end": "true" });
    } else {
      const missed = this.#store.since(resource.storage, since);
      this.#toldRevision = since;
      for (const event of missed) this.#tell(event);
    }
    this.#unsubscribe = this.#store.subscribe((event) => this.#tell(event));
    if (this.scope.bookmarks) {
      this.#bookmarkTimer = setInterval(() => this.#sendBookmark({}), times.bookmarkMs).unref();
    }
    this.#endTimer = setTimeout(() => {
      if (this.scope.bookmarks) this.#sendBookmark({});
      this.end();
    }, times.timeoutMs).unref();
  }

  /** Ends it as a timeout does, or with an error event, or as a connection that breaks. */
  end(how: { readonly error?: ApiError; readonly abruptly?: boolean } = {}): void {
    this.stop();
    if (how.error !== undefined) this.#sink.send("ERROR", how.error.toStatus());
    this.#sink.end(how.abruptly === true);
  }

  /** From now on it says nothing, and does not end. Changes meanwhile are lost to it. */
  silence(): void {
    this.#isSilent = true;
  }

  /** Stops telling; what it writes to is somebody else's to close. */
  stop(): void {
    this.#unsubscribe?.();
    clearInterval(this.#bookmarkTimer);
    clearTimeout(this.#endTimer);
  }

  #matches(object: ApiObject): boolean {
    const { namespace, resource, selects } = this.scope;
    if (namespace !== "" && object.metadata.namespace !== namespace) return false;
    return selects(resource.conversion?.fromStored(object) ?? object);
  }

  /** To a selecting client an object that begins or ceases to be selected is one that comes or goes. */
  #tell({ resource, previous, current, deleted, revision }: StoreEvent): void {
    if (resource !== this.scope.resource.storage || this.#isSilent) return;
    // Who asks for what comes after a revision that is still to come waits for it.
    if (revision <= (this.scope.since ?? 0)) return;
    this.#toldRevision = revision;
    const was = previous !== undefined && this.#matches(previous);
    const is = !deleted && this.#matches(current);
    if (is) return this.#send(was ? "MODIFIED" : "ADDED", current);
    if (!was) return;
    const { resourceVersion } = current.metadata;
    this.#send("DELETED", { ...previous, metadata: { ...previous.metadata, resourceVersion } });
  }

  #send(type: WatchEventType, object: ApiObject): void {
    this.#sink.send(type, this.scope.resource.conversion?.fromStored(object) ?? object);
  }

  #sendBookmark(annotations: Readonly<Record<string, string>>): void {
    if (this.#isSilent) return;
    const { resource } = this.scope;
    // Everything up to the store's revision has been told, or was not for this watch.
    this.#toldRevision = Math.max(this.#toldRevision, this.#store.revision);
    const metadata = {
      resourceVersion: String(this.#toldRevision),
      creationTimestamp: null,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    };
    this.#sink.send("BOOKMARK", { kind: resource.kind, apiVersion: apiVersionOf(resource), metadata });
  }
}
