import type { SimClock } from "../clock.ts";
import type { SimRandom } from "../random.ts";
import type { FaultWindows } from "./faults.ts";

export interface ManifestReaderSettings {
  readonly clock: SimClock;
  /** The current reading time in ms. */
  readonly delayMs: () => number;
  /** False once the run that reads has ended. */
  readonly isAlive: () => boolean;
  /** Takes the current manifests. */
  readonly deliver: () => void;
}

interface DelaySettings {
  readonly faults: FaultWindows;
  readonly random: SimRandom;
  readonly onFault: (kind: string) => void;
}

/** How long reading takes under the current faults, ms. */
export function manifestDelayMs({ faults, random, onFault }: DelaySettings): number {
  const { manifestDelayMaxMs } = faults.current;
  if (manifestDelayMaxMs === 0) return 0;
  onFault("manifests late");
  return random.uniform() * manifestDelayMaxMs;
}

/** Reads the manifests for one run of podwright: at its start and after changes, at once or with a delay. */
export class ManifestReader {
  readonly #settings: ManifestReaderSettings;
  #isReading = false;
  #isRead = false;

  constructor(settings: ManifestReaderSettings) {
    this.#settings = settings;
  }

  /** Whether podwright knows the current manifests, or did before they changed. */
  get isRead(): boolean {
    return this.#isRead;
  }

  /** Changes before the read are included. */
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
