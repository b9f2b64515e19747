interface Entry<K, V> {
  readonly key: K;
  readonly order: number;
  value: V;
  /** In the same bucket. */
  next: Entry<K, V> | undefined;
}

const leastBuckets = 16;
/** Names differ at their ends. */
const hashedCharacters = 12;

/**
 * What comes and goes by name or number; for the same reason not a Map as {@link TransientList} is not a Set. Its buckets
 * stay when it has become small again.
 */
export class TransientMap<K extends string | number, V> {
  #buckets = emptyBuckets<K, V>(leastBuckets);
  #size = 0;
  #order = 0;

  get size(): number {
    return this.#size;
  }

  get(key: K): V | undefined {
    return this.#find(key)?.value;
  }

  has(key: K): boolean {
    return this.#find(key) !== undefined;
  }

  set(key: K, value: V): void {
    const known = this.#find(key);
    if (known !== undefined) {
      known.value = value;
      return;
    }
    if (this.#size === this.#buckets.length) this.#grow();
    this.#insert({ key, order: this.#order++, value, next: undefined });
    this.#size++;
  }

  /** Whether it was there. */
  delete(key: K): boolean {
    const bucket = this.#bucketOf(key);
    let before: Entry<K, V> | undefined;
    for (let entry = this.#buckets[bucket]; entry !== undefined; entry = entry.next) {
      if (entry.key === key) {
        if (before === undefined) this.#buckets[bucket] = entry.next;
        else before.next = entry.next;
        entry.next = undefined;
        this.#size--;
        return true;
      }
      before = entry;
    }
    return false;
  }

  clear(): void {
    for (const key of this.keys()) this.delete(key);
  }

  /** In the order in which they came, as keys and values. */
  entries(): (readonly [K, V])[] {
    return this.#inOrder().map(({ key, value }) => [key, value] as const);
  }

  keys(): K[] {
    return this.#inOrder().map(({ key }) => key);
  }

  values(): V[] {
    return this.#inOrder().map(({ value }) => value);
  }

  #find(key: K): Entry<K, V> | undefined {
    let entry = this.#buckets[this.#bucketOf(key)];
    while (entry !== undefined && entry.key !== key) entry = entry.next;
    return entry;
  }

  #bucketOf(key: K): number {
    const hash = typeof key === "number" ? key : hashOf(key);
    return (Math.imul(hash, 0x9e_37_79_b1) >>> 8) & (this.#buckets.length - 1);
  }

  #insert(entry: Entry<K, V>): void {
    const bucket = this.#bucketOf(entry.key);
    entry.next = this.#buckets[bucket];
    this.#buckets[bucket] = entry;
  }

  #grow(): void {
    const before = this.#buckets;
    const entries = this.#inOrder();
    this.#buckets = emptyBuckets(before.length * 2);
    for (const entry of entries) this.#insert(entry);
    before.fill(undefined);
  }

  #inOrder(): Entry<K, V>[] {
    const entries: Entry<K, V>[] = [];
    for (const first of this.#buckets) {
      for (let entry = first; entry !== undefined; entry = entry.next) entries.push(entry);
    }
    return entries.toSorted((a, b) => a.order - b.order);
  }
}

function emptyBuckets<K, V>(length: number): (Entry<K, V> | undefined)[] {
  return Array.from<Entry<K, V> | undefined>({ length }).fill(undefined);
}

function hashOf(text: string): number {
  let hash = text.length;
  for (let at = Math.max(0, text.length - hashedCharacters); at < text.length; at++) {
    hash = Math.imul(hash, 31) + text.charCodeAt(at);
  }
  return hash;
}
