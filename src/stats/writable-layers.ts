import { withDeadline } from "../base/deadline.ts";
import { Places } from "../base/places.ts";
import type { Clock } from "../ports/clock.ts";
import type { StatsFiles, TreeUsage } from "../ports/stats-files.ts";

export interface WritableLayersDependencies {
  readonly clock: Clock;
  readonly files: Pick<StatsFiles, "upperDirectories" | "treeUsage" | "fileSystemNumber">;
  /** One process of each running container, by container ID. */
  readonly processes: () => Promise<ReadonlyMap<string, number>>;
}

/** A writable layer as it is on its disk. */
export interface MeasuredLayer extends TreeUsage {
  readonly path: string;
}

/** How long all layers together may take: the runtime's own figures, which are older, do for the others. */
const limitMs = 2_000;
/** Trees walked concurrently. One that outlasts the measurement hangs: it does not delay the next one. */
const walks = 2;
/** Containers whose directory is remembered. */
const maxKnown = 10_000;

/**
 * Containers' writable layers, as far as they are overlays of this machine (those of containerd and CRI-O usually are):
 * runtimes measure them only every ten seconds, which is too seldom to choose a pod to evict.
 */
export class WritableLayers {
  readonly #deps: WritableLayersDependencies;
  readonly #signal: AbortSignal;
  readonly #walks: Places;
  /** Directories by container ID, also of containers that are gone. The newest last. */
  readonly #known = new Map<string, string>();

  /** @param signal cancels measurements */
  constructor(deps: WritableLayersDependencies, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    this.#walks = new Places({ clock: deps.clock }, { kind: "the walk of a layer", limit: walks, patienceMs: limitMs });
  }

  /** Measures layers now. By container ID; those that take too long or cannot be found are missing. Never rejects. */
  async measure(containers: readonly string[]): Promise<ReadonlyMap<string, MeasuredLayer>> {
    const found = new Map<string, MeasuredLayer>();
    const measureAll = async (signal: AbortSignal): Promise<void> => {
      await this.#find(containers);
      await Promise.all(containers.map(async (id) => await this.#measureOne(id, found, signal)));
    };
    const name = "containers' writable layers to be measured";
    await withDeadline(this.#deps.clock, name, limitMs, this.#signal, measureAll).catch(() => {});
    // What ends later is not added any more.
    return new Map(found);
  }

  /** Those of removed containers whose layers are still there, and those whose layers were never found. */
  async left(
    containers: readonly string[],
  ): Promise<{ readonly there: readonly string[]; readonly unknown: readonly string[] }> {
    const there: string[] = [];
    for (const id of containers) {
      const path = this.#known.get(id);
      if (path !== undefined && (await this.#isThere(path))) there.push(id);
    }
    return { there, unknown: containers.filter((id) => !this.#known.has(id)) };
  }

  /** On a disk that does not answer it frees nothing yet. */
  async #isThere(path: string): Promise<boolean> {
    const number = await this.#deps.files.fileSystemNumber(path).catch(() => "hangs" as const);
    return number !== undefined;
  }

  async #find(containers: readonly string[]): Promise<void> {
    const processes = await this.#deps.processes();
    const running = containers.flatMap((id) => {
      const pid = processes.get(id);
      return pid === undefined ? [] : [{ id, pid }];
    });
    const paths = await this.#deps.files.upperDirectories(running.map(({ pid }) => pid));
    for (const [index, { id }] of running.entries()) {
      const path = paths[index];
      this.#known.delete(id);
      if (path !== undefined) this.#known.set(id, path);
    }
    for (const id of this.#known.keys()) {
      if (this.#known.size <= maxKnown) break;
      this.#known.delete(id);
    }
  }

  async #measureOne(id: string, found: Map<string, MeasuredLayer>, signal: AbortSignal): Promise<void> {
    const path = this.#known.get(id);
    if (path === undefined) return;
    using _walk = await this.#walks.take("later", signal);
    // One whose disk does not answer is missing, and the others are measured.
    const used = await this.#deps.files.treeUsage(path, signal).catch(() => undefined);
    if (used !== undefined) found.set(id, { path, ...used });
  }
}
