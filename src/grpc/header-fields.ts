import { trimmed } from "../base/trimmed.ts";

/** A token of RFC 9110, section 5.6.2. */
const validName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** NUL, line breaks, and characters that do not fit into a byte. */
const invalidValue = /[\0\r\n]|[^\0-\u00ff]/;
const cookie = "set-cookie";

type Init = ConstructorParameters<typeof Headers>[0];
type Fields<T> = Generator<T, undefined, unknown>;

/**
 * `Headers` of the Fetch standard (section 5.1), without its guards. Node.js' own implementation loads a whole HTTP
 * client: its first use costs about 60 ms and 18 MiB, of which a gRPC server uses nothing else.
 */
export class HeaderFields implements Headers {
  readonly #values = new Map<string, string[]>();

  constructor(init?: Init) {
    if (init === undefined) return;
    const pairs = (Symbol.iterator in init ? init : Object.entries(init)) as Iterable<readonly [string, string]>;
    for (const [name, value] of pairs) this.append(name, value);
  }

  /** @throws TypeError for an invalid name or value, like all methods with one */
  append(name: string, value: string): void {
    const key = keyOf(name);
    const values = this.#values.get(key);
    if (values === undefined) this.#values.set(key, [valueOf(name, value)]);
    else values.push(valueOf(name, value));
  }

  delete(name: string): void {
    this.#values.delete(keyOf(name));
  }

  get(name: string): string | null {
    return this.#values.get(keyOf(name))?.join(", ") ?? null;
  }

  getSetCookie(): string[] {
    return [...(this.#values.get(cookie) ?? [])];
  }

  has(name: string): boolean {
    return this.#values.has(keyOf(name));
  }

  set(name: string, value: string): void {
    this.#values.set(keyOf(name), [valueOf(name, value)]);
  }

  forEach(callback: (value: string, key: string, parent: Headers) => void, thisArgument?: unknown): void {
    for (const [name, value] of this) callback.call(thisArgument, value, name, this);
  }

  *entries(): Fields<[string, string]> {
    for (const name of [...this.#values.keys()].sort()) {
      const values = this.#values.get(name) ?? [];
      // Cookies may contain commas.
      if (name !== cookie) yield [name, values.join(", ")];
      else for (const value of values) yield [name, value];
    }
  }

  *keys(): Fields<string> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): Fields<string> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): Fields<[string, string]> {
    return this.entries();
  }
}

/** Replaces this process's `Headers`. The program calls it before the first use of `Headers`. */
export function useHeaderFields(): void {
  globalThis.Headers = HeaderFields;
}

function keyOf(name: string): string {
  if (!validName.test(name)) throw new TypeError(`invalid header name ${JSON.stringify(name)}`);
  return name.toLowerCase();
}

function valueOf(name: string, value: string): string {
  const text = trimmed(value, "\t\n\r ");
  if (invalidValue.test(text)) throw new TypeError(`invalid value of header ${name}`);
  return text;
}
