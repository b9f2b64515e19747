import { expired } from "./api-error.ts";
import { type ApiObject, type Fields, freeze } from "./objects.ts";

/** A change of an object. A store's events are ordered by revision. */
export interface StoreEvent {
  readonly revision: number;
  /** The store's name of the resource, such as `pods` or `leases.coordination.k8s.io`. */
  readonly resource: string;
  /** `namespace/name`, or the name without namespaces. */
  readonly key: string;
  readonly previous: ApiObject | undefined;
  /** The object after the change; for a deletion its last state with the deletion's revision. */
  readonly current: ApiObject;
  readonly deleted: boolean;
}

/** Called for each change, before the changing call returns. */
export type StoreListener = (event: StoreEvent) => void;

/**
 * All objects with a common revision counter, and the latest changes, from which recent states can be reproduced.
 * Objects are frozen. The store does not interpret them.
 */
export class Store {
  readonly #objects = new Map<string, Map<string, ApiObject>>();
  readonly #history = new Map<string, StoreEvent[]>();
  /** By resource: the last revision whose change is no longer kept. */
  readonly #compacted = new Map<string, number>();
  readonly #listeners = new Set<StoreListener>();
  readonly #keptEvents: number;
  #revision = 1;

  /** @param keptEvents number of kept changes per resource */
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

  /** Stores an object with a new resourceVersion. */
  put(resource: string, key: string, object: Fields): ApiObject {
    const objects = this.#objects.get(resource) ?? new Map<string, ApiObject>();
    this.#objects.set(resource, objects);
    const previous = objects.get(key);
    const current = this.#atNextRevision(object as ApiObject);
    objects.set(key, current);
    this.#record({ revision: this.#revision, resource, key, previous, current, deleted: false });
    return current;
  }

  /** Removes an object; returns its last state. */
  remove(resource: string, key: string): ApiObject | undefined {
    const previous = this.get(resource, key);
    if (previous === undefined) return undefined;
    this.#objects.get(resource)?.delete(key);
    const current = this.#atNextRevision(previous);
    this.#record({ revision: this.#revision, resource, key, previous, current, deleted: true });
    return current;
  }

  /**
   * The objects of a resource at a revision.
   * @throws ApiError 410 if it is no longer kept
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
   * @throws ApiError 410 if some are no longer kept
   */
  since(resource: string, revision: number): StoreEvent[] {
    const compacted = this.#compacted.get(resource) ?? 0;
    if (revision < compacted) throw expired(`too old resource version: ${revision} (${compacted})`);
    const history = this.#history.get(resource) ?? [];
    // Callers mostly need the end of a long history.
    let first = history.length;
    while (first > 0 && (history[first - 1]?.revision ?? 0) > revision) first--;
    return history.slice(first);
  }

  /** Drops all history: watches from an older revision get a 410. */
  compact(): void {
    this.#revision++;
    for (const resource of this.#objects.keys()) {
      this.#compacted.set(resource, this.#revision);
      this.#history.set(resource, []);
    }
  }

  /** @returns ends the subscription */
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
      // In batches of a tenth: shifting one by one would move the whole array at each change.
      const dropped = history.splice(0, Math.ceil(this.#keptEvents / 10));
      this.#compacted.set(event.resource, dropped.at(-1)?.revision ?? 0);
    }
    for (const listener of [...this.#listeners]) listener(event);
  }
}
