import type { Store, StoreChange, Stored } from "./store.ts";
import type { Refusal, Value } from "./values.ts";

export interface WatchScope {
  readonly resource: string;
  readonly selects: (value: Value) => boolean;
  /** Tell what changed after this version; undefined: begin with all that there is, and say when that was all. */
  readonly since: number | undefined;
  readonly bookmarks: boolean;
}

/** Takes the lines of a watch's body. */
export interface WatchSink {
  /** @param version up to which everything is told with it */
  line(text: string, version: number): void;
  /** The server has ended it, as it does after a while. */
  end(): void;
}

/** One watch, from the server's side: lines of JSON. */
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

  /** @throws Refusal (410) when what changed since then was forgotten */
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

  /** Everything up to now was told. */
  bookmark(): void {
    if (this.#scope.bookmarks && this.#store.version > (this.#scope.since ?? 0)) this.#bookmark({});
  }

  /** An error in place of what would come next, as a server says that it has forgotten the watch's place. */
  fail(refusal: Refusal): void {
    this.#sink.line(JSON.stringify({ type: "ERROR", object: refusal.status() }), 0);
    this.end();
  }

  end(): void {
    this.stop();
    this.#sink.end();
  }

  /** Tells nothing any more. */
  stop(): void {
    this.#listening?.[Symbol.dispose]();
    this.#listening = undefined;
  }

  /** From a place that a restored store has yet to come to nothing is told until then, as real servers do it. */
  #tell({ resource, before, after, last }: StoreChange): void {
    if (resource !== this.#scope.resource || last.version <= (this.#scope.since ?? 0)) return;
    const was = before !== undefined && this.#scope.selects(before.value);
    const is = after !== undefined && this.#scope.selects(after.value);
    if (is) this.#line(was ? "MODIFIED" : "ADDED", after);
    else if (was) this.#line("DELETED", last);
  }

  #line(type: string, { text, version }: Stored, told = version): void {
    this.#sink.line(`{"type":"${type}","object":${text}}`, told);
  }

  #bookmark(annotations: Readonly<Record<string, string>>): void {
    const metadata = { resourceVersion: String(this.#store.version), annotations };
    this.#sink.line(JSON.stringify({ type: "BOOKMARK", object: { metadata } }), this.#store.version);
  }
}
