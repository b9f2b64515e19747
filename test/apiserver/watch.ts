import type { ApiError } from "./api-error.ts";
import type { ApiObject, Fields } from "./objects.ts";
import { apiVersionOf, type Resource } from "./resource.ts";
import type { Selector } from "./selectors.ts";
import type { Store, StoreEvent } from "./store.ts";

export interface WatchScope {
  readonly resource: Resource;
  /** `""` for all namespaces. */
  readonly namespace: string;
  readonly selects: Selector;
  /** Report changes after this revision; undefined: begin with the existing objects. */
  readonly since: number | undefined;
  readonly bookmarks: boolean;
  /** A watch list (KEP-3157): a bookmark marks the end of the existing objects. */
  readonly marksInitialEnd: boolean;
}

export type WatchEventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";

/** The destination of a watch's events. */
export interface WatchSink {
  readonly send: (type: WatchEventType, object: Fields) => void;
  /** @param abruptly like a broken connection */
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
   * Reports the existing objects or the missed changes, and then each change.
   * @throws ApiError 410 if missed changes are no longer kept; nothing was reported then
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

  /** Ends it as at a timeout, with an error event, or like a broken connection. */
  end(how: { readonly error?: ApiError; readonly abruptly?: boolean } = {}): void {
    this.stop();
    if (how.error !== undefined) this.#sink.send("ERROR", how.error.toStatus());
    this.#sink.end(how.abruptly === true);
  }

  /** Silences the watch without ending it. It loses the changes. */
  silence(): void {
    this.#isSilent = true;
  }

  /** Stops reporting; does not close the destination. */
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

  /** A client with a selector sees a newly selected object as added, and one no longer selected as deleted. */
  #tell({ resource, previous, current, deleted, revision }: StoreEvent): void {
    if (resource !== this.scope.resource.storage || this.#isSilent) return;
    // A watch from a future revision waits for it.
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
    // Everything up to the store's revision was reported, or not for this watch.
    this.#toldRevision = Math.max(this.#toldRevision, this.#store.revision);
    const metadata = {
      resourceVersion: String(this.#toldRevision),
      creationTimestamp: null,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    };
    this.#sink.send("BOOKMARK", { kind: resource.kind, apiVersion: apiVersionOf(resource), metadata });
  }
}
