import type { SimClock } from "../clock.ts";

export interface ManifestReaderSettings {
  readonly clock: SimClock;
  /** How long it takes at this moment, in ms. */
  readonly delayMs: () => number;
  /** False once the life is over that reads. */
  readonly isAlive: () => boolean;
  /** Takes what stands in the manifests now. */
  readonly deliver: () => void;
}

/** Reads the manifests for one life of podwright: at its start and when they change, at once or a good while later. */
export class ManifestReader {
  readonly #settings: ManifestReaderSettings;
  #isReading = false;
  #isRead = false;

  constructor(settings: ManifestReaderSettings) {
    this.#settings = settings;
  }

  /** Whether podwright knows all that stands in them, or did before they changed. */
  get isRead(): boolean {
    return this.#isRead;
  }

  /** What changes until they have been read is read with the rest. */
  read(): void {
    if (this.#isReading) return;
    const delayMs = this.#settings.delayMs();
    if (delayMs === 0) return this.#deliver();
    this.#isReading = true;
    this.#settings.clock.schedule("manifests to be read", delayMs, () => {
      this.#isReading = false;
      if (this.#settings.isAlive()) this.#deliver();
    });
  }

  #deliver(): void {
    this.#isRead = true;
    this.#settings.deliver();
  }
}
