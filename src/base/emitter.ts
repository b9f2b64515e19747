/** Calls its listeners for each event, in the order of their registration. They must not throw. */
export class Emitter<T = void> {
  readonly #listeners = new Set<(value: T) => void>();

  /** Calls `listener` until the result is disposed of. */
  on(listener: (value: T) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  emit(value: T): void {
    for (const listener of this.#listeners) listener(value);
  }
}
