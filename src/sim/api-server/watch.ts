import type { Store, StoreChange, Stored } from "./store.ts";
import type { Refusal, Value } from "./values.ts";

export interface WatchScope {
  readonly resource: string;
  readonly selects: (value: Value) => boolean;
  /** Sends changes after this version; undefined: begins with all objects, followed by a bookmark. */
  readonly since: number | undefined;
  readonly bookmarks: boolean;
}

/** Receives the lines of a watch's body. */
export interface WatchSink {
  /** @param version up to which this line completes the events */
  line(text: string, version: number): void;
  /** The server ends the watch, as it does after a while. */
  end(): void;
}

/** The server side of a watch: lines of JSON. */
export class Watch {
  readonly #store: Store;
  readonly #scope: WatchScope;
  readonly #sink: WatchSink;
  #listening: Disposable | undefined;

  constructor(store: Store, scope: WatchScope, sink: WatchSink) {
    this.#store = store;
    this.#scope = scope;
    this.#sink = sink;
  }

  get resource(): string {
    return this.#scope.resource;
  }

  /** @throws Refusal (410) when that version was compacted */
  start(): void {
    const { resource, since, selects } = this.#scope;
    if (since === undefined) {
      for (const stored of this.#store.list(resource)) {
        if (selects(stored.value)) this.#line("ADDED", stored, 0);
      }
      this.#bookmark({ "k8s.io/initial-events-end": "true" });
    } else {
      for (const change of this.#store.since(resource, since)) this.#tell(change);
    }
    this.#listening = this.#store.onChange((change) => this.#tell(change));
  }

  /** Everything up to now has been sent. */
  bookmark(): void {
    if (this.#scope.bookmarks && this.#store.version > (this.#scope.since ?? 0)) this.#bookmark({});
  }

  /** Sends an error in place of the next event, as a server does after a compaction. */
  fail(refusal: Refusal): void {
    this.#sink.line(JSON.stringify({ type: "ERROR", object: refusal.status() }), 0);
    this.end();
  }

  end(): void {
    this.stop();
    this.#sink.end();
  }

  /** Sends no more. */
  stop(): void {
    this.#listening?.[Symbol.dispose]();
    this.#listening = undefined;
  }

  /** From a version that a restored store has yet to reach, nothing is sent until then, as by real servers. */
  #tell({ resource, before, after, last }: StoreChange): void {
    if (resource !== this.#scope.resource || last.version <= (this.#scope.since ?? 0)) return;
    const was = before !== undefined && this.#scope.selects(before.value);
    const is = after !== undefined && this.#scope.selects(after.value);
    if (is) this.#line(was ? "MODIFIED" : "ADDED", after);
    else if (was) this.#line("DELETED", last);
  }

  #line(type: string, { text, version }: Stored, shown = version): void {
    this.#sink.line(`{"type":"${type}","object":${text}}`, shown);
  }

  #bookmark(annotations: Readonly<Record<string, string>>): void {
    const metadata = { resourceVersion: String(this.#store.version), annotations };
    this.#sink.line(JSON.stringify({ type: "BOOKMARK", object: { metadata } }), this.#store.version);
  }
}
