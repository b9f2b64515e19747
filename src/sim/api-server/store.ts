import { Emitter } from "../../base/emitter.ts";
import { tooOld, type Value } from "./values.ts";

/** An object at one version, with its text: most are sent more often than written. */
export interface Stored {
  /** `namespace/name` */
  readonly key: string;
  readonly version: number;
  readonly value: Value;
  readonly text: string;
}

/** One change of one object. */
export interface StoreChange {
  readonly version: number;
  /** `pods` */
  readonly resource: string;
  readonly before: Stored | undefined;
  /** Undefined: removed. */
  readonly after: Stored | undefined;
  /** At a removal: what it was, at the version of the removal. */
  readonly last: Stored;
}

/** All objects at one moment. */
export interface Backup {
  readonly version: number;
  readonly objects: readonly (readonly [string, readonly (readonly [string, Stored])[]])[];
}

/** Kinds whose history is not needed, and that change all the time. */
const unwatched: ReadonlySet<string> = new Set(["events", "leases"]);

/** All objects, their versions, and the changes for watches (etcd and its compaction). */
export class Store {
  readonly #objects = new Map<string, Map<string, Stored>>();
  readonly #changes = new Map<string, StoreChange[]>();
  readonly #changed = new Emitter<StoreChange>();
  #version = 1;
  #compacted = 0;

  get version(): number {
    return this.#version;
  }

  /** Later changes are kept. */
  get oldest(): number {
    return this.#compacted;
  }

  get(resource: string, key: string): Stored | undefined {
    return this.#objects.get(resource)?.get(key);
  }

  list(resource: string): Stored[] {
    return [...(this.#objects.get(resource)?.values() ?? [])];
  }

  put(resource: string, key: string, value: Value): Stored {
    const objects = this.#objects.get(resource) ?? new Map<string, Stored>();
    this.#objects.set(resource, objects);
    const before = objects.get(key);
    const after = this.#stored(key, value);
    objects.set(key, after);
    this.#record({ version: after.version, resource, before, after, last: after });
    return after;
  }

  remove(resource: string, key: string): Stored | undefined {
    const before = this.get(resource, key);
    if (before === undefined) return undefined;
    this.#objects.get(resource)?.delete(key);
    const last = this.#stored(key, before.value);
    this.#record({ version: last.version, resource, before, after: undefined, last });
    return last;
  }

  /** Changes after a version, oldest first. @throws Refusal (410) when it was compacted */
  since(resource: string, version: number): readonly StoreChange[] {
    if (version < this.#compacted) throw tooOld(version);
    const changes = this.#changes.get(resource) ?? [];
    let first = changes.length;
    while (first > 0 && (changes[first - 1]?.version ?? 0) > version) first--;
    return changes.slice(first);
  }

  /** The objects at a version. @throws Refusal (410) when it was compacted */
  at(resource: string, version: number): Stored[] {
    const objects = new Map(this.#objects.get(resource));
    for (const { before, last } of this.since(resource, version).toReversed()) {
      if (before === undefined) objects.delete(last.key);
      else objects.set(last.key, before);
    }
    return [...objects.values()];
  }

  /** Drops all changes: clients at an older version have to relist. */
  compact(): void {
    this.#compacted = ++this.#version;
    this.#changes.clear();
  }

  /** The current state, for {@link restore}. */
  backup(): Backup {
    return { version: this.#version, objects: [...this.#objects].map(([resource, all]) => [resource, [...all]]) };
  }

  /** Restores that state with its versions; everything in between is lost. */
  restore({ version, objects }: Backup): void {
    this.#version = version;
    this.#compacted = Math.min(this.#compacted, version);
    this.#objects.clear();
    for (const [resource, all] of objects) this.#objects.set(resource, new Map(all));
    this.#changes.clear();
  }

  onChange(listener: (change: StoreChange) => void): Disposable {
    return this.#changed.on(listener);
  }

  #stored(key: string, value: Value): Stored {
    const version = ++this.#version;
    const versioned: Value = { ...value, metadata: { ...value.metadata, resourceVersion: String(version) } };
    return { key, version, value: versioned, text: JSON.stringify(versioned) };
  }

  #record(change: StoreChange): void {
    if (!unwatched.has(change.resource)) this.#remember(change);
    this.#changed.emit(change);
  }

  #remember(change: StoreChange): void {
    const changes = this.#changes.get(change.resource) ?? [];
    this.#changes.set(change.resource, changes);
    changes.push(change);
  }
}
