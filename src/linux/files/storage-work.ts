import { systemClock } from "../processes/clock.ts";
import type { FarStorage } from "./far-storage.ts";
import { hangsMs } from "./lane.ts";
import { noAnswer } from "./remote-storage.ts";

/** Work in progress in storage that may hang, each on its own thread. */
const working = new Set<StorageWork>();

/** Long work in storage that may hang, counted until it is disposed of, whether or not anything still waits for it. */
export class StorageWork implements Disposable {
  readonly #storage: FarStorage;
  #sinceMs = systemClock.monotonic();

  /** @throws FileError `ETIMEDOUT` while other work hangs in the storage */
  constructor(storage: FarStorage) {
    StorageWork.throwIfHanging(storage);
    this.#storage = storage;
    working.add(this);
  }

  /** @throws FileError `ETIMEDOUT` while work hangs in the storage; what hangs in other storage does not matter */
  static throwIfHanging({ lane }: FarStorage): void {
    const lateMs = systemClock.monotonic() - hangsMs;
    for (const { storage, sinceMs } of working) {
      if (storage.lane === lane && sinceMs < lateMs) throw noAnswer(storage.target, sinceMs);
    }
  }

  get storage(): FarStorage {
    return this.#storage;
  }

  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** The storage has responded. */
  goesOn(): void {
    this.#sinceMs = systemClock.monotonic();
  }

  [Symbol.dispose](): void {
    working.delete(this);
  }
}
