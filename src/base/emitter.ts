/** Tells its listeners what happens, in the order in which they came. They must not throw. */
export class Emitter<T = void> {
  readonly #listeners = new Set<(value: T) => void>();

  /** Tells `listener` from now on, until the result is disposed of. */
  on(listener: (value: T) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  emit(value: T): void {
    for (const listener of this.#listeners) listener(value);
  }
}
