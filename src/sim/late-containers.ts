import type { SimClock } from "./clock.ts";
import { attemptOf, nameOf, type SimContainer } from "./world-model.ts";

/** How long such a container is kept without another request. */
const keptMs = 120_000;

/** Containers whose creation completed after the caller gave up. They are hidden, but occupy their names. */
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

  /** The kept container for a request. */
  take(podUid: string, wanted: Pick<SimContainer, "config">): SimContainer | undefined {
    const name = keyOf(podUid, wanted);
    const kept = this.#kept.get(name);
    this.#kept.delete(name);
    return kept;
  }

  has(sandboxId: string): boolean {
    return [...this.#kept.values()].some((kept) => kept.sandboxId === sandboxId);
  }

  /** Removes them with their sandbox. */
  drop(sandboxId: string): void {
    for (const [name, kept] of this.#kept) if (kept.sandboxId === sandboxId) this.#kept.delete(name);
  }
}

function keyOf(podUid: string, container: Pick<SimContainer, "config">): string {
  return `${podUid}/${nameOf(container)}/${attemptOf(container)}`;
}
