import type { ReflectorHandler } from "../api-client/reflector.ts";
import type { CsiDriver } from "../api/csi-node.ts";
import { withDeadline } from "../base/deadline.ts";
import { Emitter } from "../base/emitter.ts";
import type { Watcher } from "../objects/api-objects.ts";
import type { Collection } from "../objects/collection.ts";
import type { Clock } from "../ports/clock.ts";
import { csiDrivers } from "./resources.ts";

/** How long a volume waits for the list of CSIDriver objects before its retry. */
const knownLimitMs = 30_000;

/**
 * The CSIDriver objects of the cluster. They are watched once a driver or a volume needs them: a node without either
 * makes no requests.
 */
export class CsiDriverObjects {
  readonly #clock: Clock;
  readonly #objects: Collection<CsiDriver>;
  readonly #changes = new Emitter();
  #watch: Watcher | undefined;
  #stop: AbortSignal | undefined;
  /** Resolves at the next change. */
  #next = Promise.withResolvers<void>();
  #isWatched = false;
  #isNeeded = false;

  /** @param objects an empty collection */
  constructor(clock: Clock, objects: Collection<CsiDriver>) {
    this.#clock = clock;
    this.#objects = objects;
  }

  /** @param watch undefined: no cluster, so no driver has an object */
  connect(watch: Watcher | undefined): void {
    this.#watch = watch;
  }

  /** Watches once needed, until the signal aborts. */
  start(signal: AbortSignal): void {
    this.#stop = signal;
    this.#begin();
  }

  /** Calls the listener after each change. */
  onChange(listener: () => void): Disposable {
    return this.#changes.on(listener);
  }

  /** Resolves at the next change. The same promise for all: those that have waited leave nothing. */
  get nextChange(): Promise<void> {
    return this.#next.promise;
  }

  /** Starts the watch. */
  need(): void {
    this.#isNeeded = true;
    this.#begin();
  }

  /** The object as currently known; undefined: there is none, or it is not known yet. */
  peek(name: string): CsiDriver | undefined {
    return this.#objects.get(name);
  }

  /** The driver's object; undefined: it has none. Waits for the first list. */
  async get(name: string, signal: AbortSignal): Promise<CsiDriver | undefined> {
    if (this.#watch === undefined) return undefined;
    this.need();
    const wait = "the CSIDriver objects of the API server";
    const objects = this.#objects;
    if (!objects.isKnown) await withDeadline(this.#clock, wait, knownLimitMs, signal, () => objects.known);
    return objects.get(name);
  }

  #changed(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers();
    this.#changes.emit();
  }

  #begin(): void {
    if (!this.#isNeeded || this.#isWatched || this.#watch === undefined || this.#stop === undefined) return;
    this.#isWatched = true;
    const objects = this.#objects;
    const handler: ReflectorHandler<CsiDriver> = {
      replaced: (all) => {
        objects.replaced(all);
        this.#changed();
      },
      changed: (type, object) => {
        objects.changed(type, object);
        this.#changed();
      },
    };
    void this.#watch({ name: "CSI drivers", resource: csiDrivers }, handler, this.#stop);
  }
}
