import { TransientList } from "./transient-list.ts";

/**
 * Calls its listeners for each event, in the order of their registration; one that is added meanwhile hears the next. They
 * must not throw.
 */
export class Emitter<T = void> {
  readonly #listeners = new TransientList<(value: T) => void>();

  /** Calls `listener` until the result is disposed of. */
  on(listener: (value: T) => void): Disposable {
    return this.#listeners.add(listener);
  }

  emit(value: T): void {
    for (const listener of this.#listeners) listener(value);
  }
}
