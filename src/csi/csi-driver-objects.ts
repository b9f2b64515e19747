import type { ReflectorHandler } from "../api-client/reflector.ts";
import type { CsiDriver } from "../api/csi-node.ts";
import { withDeadline } from "../base/deadline.ts";
import { Emitter } from "../base/emitter.ts";
import type { Watcher } from "../objects/api-objects.ts";
import type { Clock } from "../ports/clock.ts";
import { csiDrivers } from "./resources.ts";

/** How long a volume waits for the list of CSIDriver objects before it is tried again. */
const knownLimitMs = 30_000;

/**
 * The CSIDriver objects of the cluster. They are watched from the first moment that a driver or a volume needs them: a node
 * without either asks for nothing.
 */
export class CsiDriverObjects {
  readonly #clock: Clock;
  readonly #objects = new Map<string, CsiDriver>();
  readonly #known = Promise.withResolvers<void>();
  readonly #changes = new Emitter();
  #watch: Watcher | undefined;
  #stop: AbortSignal | undefined;
  #isWatched = false;
  #isNeeded = false;
  #isKnown = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param watch undefined: the node is in no cluster, and no driver has an object */
  connect(watch: Watcher | undefined): void {
    this.#watch = watch;
  }

  /** Watches, once they are needed, until the signal aborts. */
  start(signal: AbortSignal): void {
    this.#stop = signal;
    this.#begin();
  }

  /** Told of each change. */
  onChange(listener: () => void): Disposable {
    return this.#changes.on(listener);
  }

  /** From now on they are known, or soon. */
  need(): void {
    this.#isNeeded = true;
    this.#begin();
  }

  /** As it is known at this moment; undefined: there is none, or it is not known yet. */
  peek(name: string): CsiDriver | undefined {
    return this.#objects.get(name);
  }

  /** The driver's object; undefined: it has none. */
  async get(name: string, signal: AbortSignal): Promise<CsiDriver | undefined> {
    if (this.#watch === undefined) return undefined;
    this.need();
    const wait = "the CSIDriver objects of the API server";
    if (!this.#isKnown) await withDeadline(this.#clock, wait, knownLimitMs, signal, () => this.#known.promise);
    return this.#objects.get(name);
  }

  #begin(): void {
    if (!this.#isNeeded || this.#isWatched || this.#watch === undefined || this.#stop === undefined) return;
    this.#isWatched = true;
    const objects = this.#objects;
    const handler: ReflectorHandler<CsiDriver> = {
      replaced: (all) => {
        objects.clear();
        for (const object of all) objects.set(object.metadata.name, object);
        this.#isKnown = true;
        this.#known.resolve();
        this.#changes.emit();
      },
      changed: (type, object) => {
        if (type === "DELETED") objects.delete(object.metadata.name);
        else objects.set(object.metadata.name, object);
        this.#changes.emit();
      },
    };
    void this.#watch({ name: "CSI drivers", resource: csiDrivers }, handler, this.#stop);
  }
}
