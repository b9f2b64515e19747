import { expired } from "./api-error.ts";
import { type ApiObject, type Fields, freeze } from "./objects.ts";

/** One change of one object. The events of a store are in the order of their revisions. */
export interface StoreEvent {
  readonly revision: number;
  /** The store's name of the resource, as `pods` or `leases.coordination.k8s.io`. */
  readonly resource: string;
  /** `namespace/name`, or the name of what has no namespace. */
  readonly key: string;
  readonly previous: ApiObject | undefined;
  /** What the object became; at a deletion what it was, with the revision of the deletion. */
  readonly current: ApiObject;
  readonly deleted: boolean;
}

/** Called at each change, before the call that made it returns. */
export type StoreListener = (event: StoreEvent) => void;

/**
 * All objects, with one count of revisions and the latest changes, from which any recent state can be told again. The
 * objects it holds are frozen. It knows nothing of what they mean.
 */
export class Store {
  readonly #objects = new Map<string, Map<string, ApiObject>>();
  readonly #history = new Map<string, StoreEvent[]>();
  /** Changes of a resource up to this revision are no longer kept. */
  readonly #compacted = new Map<string, number>();
  readonly #listeners = new Set<StoreListener>();
  readonly #keptEvents: number;
  #revision = 1;

  /** @param keptEvents how many changes of each resource are kept */
  constructor(keptEvents = 10_000) {
    this.#keptEvents = keptEvents;
  }

  /** The revision of the latest change. */
  get revision(): number {
    return this.#revision;
  }

  get(resource: string, key: string): ApiObject | undefined {
    return this.#objects.get(resource)?.get(key);
  }

  /** All objects of a resource, in no order. */
  all(resource: string): ApiObject[] {
    return [...(this.#objects.get(resource)?.values() ?? [])];
  }

  /** Stores an object under a new revision, which is written into its metadata. */
  put(resource: string, key: string, object: Fields): ApiObject {
    const objects = this.#objects.get(resource) ?? new Map<string, ApiObject>();
    this.#objects.set(resource, objects);
    const previous = objects.get(key);
    const current = this.#atNextRevision(object as ApiObject);
    objects.set(key, current);
    this.#record({ revision: this.#revision, resource, key, previous, current, deleted: false });
    return current;
  }

  /** Removes an object; gives it as its last event has it. */
  remove(resource: string, key: string): ApiObject | undefined {
    const previous = this.get(resource, key);
    if (previous === undefined) return undefined;
    this.#objects.get(resource)?.delete(key);
    const current = this.#atNextRevision(previous);
    this.#record({ revision: this.#revision, resource, key, previous, current, deleted: true });
    return current;
  }

  /**
   * The objects of a resource as they were at a revision.
   * @throws ApiError 410 when that is no longer known
   */
  at(resource: string, revision: number): Map<string, ApiObject> {
    const objects = new Map(this.#objects.get(resource));
    for (const { key, previous } of this.since(resource, revision).reverse()) {
      if (previous === undefined) objects.delete(key);
      else objects.set(key, previous);
    }
    return objects;
  }

  /**
   * The changes of a resource after a revision, oldest first.
   * @throws ApiError 410 when some of them are no longer known
   */
  since(resource: string, revision: number): StoreEvent[] {
    const compacted = this.#compacted.get(resource) ?? 0;
    if (revision < compacted) throw expired(`too old resource version: ${revision} (${compacted})`);
    const history = this.#history.get(resource) ?? [];
    // Almost always the caller wants the end of a long history.
    let first = history.length;
    while (first > 0 && (history[first - 1]?.revision ?? 0) > revision) first--;
    return history.slice(first);
  }

  /** Forgets the changes of all resources up to now: whoever wants to go on from an older revision gets a 410. */
  compact(): void {
    this.#revision++;
    for (const resource of this.#objects.keys()) {
      this.#compacted.set(resource, this.#revision);
      this.#history.set(resource, []);
    }
  }

  /** @returns what ends the subscription */
  subscribe(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #atNextRevision(object: ApiObject): ApiObject {
    this.#revision++;
    return freeze({ ...object, metadata: { ...object.metadata, resourceVersion: String(this.#revision) } });
  }

  #record(event: StoreEvent): void {
    const history = this.#history.get(event.resource) ?? [];
    this.#history.set(event.resource, history);
    history.push(event);
    if (history.length > this.#keptEvents) {
      // By a tenth at a time: shifting one by one would move the whole array at each change.
      const dropped = history.splice(0, Math.ceil(this.#keptEvents / 10));
      this.#compacted.set(event.resource, dropped.at(-1)?.revision ?? 0);
    }
    for (const listener of [...this.#listeners]) listener(event);
  }
}
