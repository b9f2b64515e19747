/** A list's ends. */
interface Ends<T> {
  first: Entry<T> | undefined;
  last: Entry<T> | undefined;
  size: number;
}

/** A value in a list, until it is disposed of. */
class Entry<T> implements Disposable {
  readonly value: T;
  after: Entry<T> | undefined;
  #before: Entry<T> | undefined;
  #list: Ends<T> | undefined;

  constructor(list: Ends<T>, value: T) {
    this.value = value;
    this.#list = list;
    this.#before = list.last;
    if (list.last === undefined) list.first = this;
    else list.last.after = this;
    list.last = this;
    list.size++;
  }

  get isRemoved(): boolean {
    return this.#list === undefined;
  }

  [Symbol.dispose](): void {
    const list = this.#list;
    if (list === undefined) return;
    if (this.#before === undefined) list.first = this.after;
    else this.#before.after = this.after;
    if (this.after === undefined) list.last = this.#before;
    else this.after.#before = this.#before;
    list.size--;
    this.#list = undefined;
    this.#before = undefined;
    this.after = undefined;
  }
}

/**
 * What comes and goes, in the order in which it came: calls in progress, waits, listeners.
 *
 * Not a Set: V8 gives one a new table after a few additions and removals, and the table before leads to it. A table that
 * has become old keeps all that follow, with what was in them: whatever was in progress lives until the next collection of
 * all garbage, instead of the next one of what is young. Here nothing leads from what is gone to what is there.
 */
export class TransientList<T> {
  readonly #ends: Ends<T> = { first: undefined, last: undefined, size: 0 };

  get size(): number {
    return this.#ends.size;
  }

  /** Dispose of the result to remove the value. */
  add(value: T): Disposable {
    return new Entry(this.#ends, value);
  }

  clear(): void {
    for (const entry of this.#entries()) entry[Symbol.dispose]();
  }

  /** Those that are there now; one that is removed meanwhile is left out. */
  *[Symbol.iterator](): Generator<T, undefined> {
    for (const entry of this.#entries()) if (!entry.isRemoved) yield entry.value;
  }

  #entries(): Entry<T>[] {
    const entries: Entry<T>[] = [];
    for (let entry = this.#ends.first; entry !== undefined; entry = entry.after) entries.push(entry);
    return entries;
  }
}
