import type { SimClock } from "./clock.ts";
import { attemptOf, nameOf, type SimContainer } from "./world-model.ts";

/** So long a container that nobody asked for again is kept. */
const keptMs = 120_000;

/** Containers that were made when nobody waited for them any more. Nobody sees them, but they have their names. */
export class LateContainers {
  readonly #clock: SimClock;
  readonly #kept = new Map<string, SimContainer>();

  constructor(clock: SimClock) {
    this.#clock = clock;
  }

  keep(podUid: string, container: SimContainer): void {
    const name = keyOf(podUid, container);
    this.#kept.set(name, container);
    this.#clock.schedule(`late container ${container.id} to be given up`, keptMs, () => {
      if (this.#kept.get(name) === container) this.#kept.delete(name);
    });
  }

  /** The one that was kept for such a request. */
  take(podUid: string, wanted: Pick<SimContainer, "config">): SimContainer | undefined {
    const name = keyOf(podUid, wanted);
    const kept = this.#kept.get(name);
    this.#kept.delete(name);
    return kept;
  }

  has(sandboxId: string): boolean {
    return [...this.#kept.values()].some((kept) => kept.sandboxId === sandboxId);
  }

  /** They go with their sandbox. */
  drop(sandboxId: string): void {
    for (const [name, kept] of this.#kept) if (kept.sandboxId === sandboxId) this.#kept.delete(name);
  }
}

function keyOf(podUid: string, container: Pick<SimContainer, "config">): string {
  return `${podUid}/${nameOf(container)}/${attemptOf(container)}`;
}
