import type { ReflectorHandler } from "../api-client/reflector.ts";
import type { ApiObject } from "../api-client/resource.ts";

/** All objects of a kind, from a reflector. */
export class Collection<T extends ApiObject> implements ReflectorHandler<T> {
  readonly #objects = new Map<string, T>();
  #isKnown = false;
  #version = 0;
  readonly #known = Promise.withResolvers<void>();

  /** Grows with each change. */
  get version(): number {
    return this.#version;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Resolves once all are known. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  get(name: string, namespace?: string): T | undefined {
    return this.#objects.get(keyOf(name, namespace));
  }

  all(): Iterable<T> {
    return this.#objects.values();
  }

  replaced(objects: readonly T[]): void {
    this.#objects.clear();
    for (const object of objects) this.#objects.set(keyOf(object.metadata.name, object.metadata.namespace), object);
    this.#isKnown = true;
    this.#version++;
    this.#known.resolve();
  }

  changed(type: "ADDED" | "MODIFIED" | "DELETED", object: T): void {
    const key = keyOf(object.metadata.name, object.metadata.namespace);
    this.#version++;
    if (type === "DELETED") this.#objects.delete(key);
    else this.#objects.set(key, object);
  }
}

function keyOf(name: string, namespace = ""): string {
  return `${namespace}/${name}`;
}
