import type { SimEntry } from "../life/node.ts";
import { dataText, idOf } from "./entry-data.ts";

/**
 * Instances of containers that podwright has looked at since they came to run. Until then it asks the one before, at an
 * address that both have.
 */
export class KnownInstances {
  readonly #known = new Set<string>();
  /** The newest instances of each pod, by UID, that were noticed and not looked at yet. */
  readonly #noticed = new Map<string, Set<string>>();

  has(id: string): boolean {
    return this.#known.has(id);
  }

  hear(entry: SimEntry): void {
    const { what, pod } = entry;
    if (pod === undefined) return;
    const noticed = this.#noticed.get(pod.uid);
    if (what === "ContainerStarted") {
      this.#known.add(idOf(entry));
      this.#noticed.set(pod.uid, (noticed ?? new Set()).add(idOf(entry)));
    } else if (what === "FailedSync") {
      for (const id of noticed ?? []) this.#known.delete(id);
    } else if (what === "ContainerStateChanged" && dataText(entry, "state") === "running") {
      this.#known.add(idOf(entry));
      noticed?.delete(idOf(entry));
    }
  }
}
