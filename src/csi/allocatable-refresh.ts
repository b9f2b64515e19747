import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { CsiDriverObjects } from "./csi-driver-objects.ts";
import type { CsiClient } from "./csi-client.ts";
import type { DriverOnNode } from "./csi-node-object.ts";
import type { DriverStore } from "./driver-store.ts";

export interface AllocatableRefreshDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly drivers: DriverStore;
  readonly objects: CsiDriverObjects;
  /** Rejects if the driver answers more than another count, or if its count cannot be published. */
  readonly update: (driver: DriverOnNode, signal: AbortSignal) => Promise<void>;
}

interface Refresh {
  readonly periodMs: number;
  timer: Disposable;
}

/**
 * Queries drivers for their maximum number of volumes on this node, if their CSIDriver objects request it
 * (nodeAllocatableUpdatePeriodSeconds): periodically, and when an attachment has shown that the number is out of date.
 */
export class AllocatableRefresh {
  readonly #deps: AllocatableRefreshDependencies;
  readonly #refreshes = new Map<string, Refresh>();
  /** Registrations that are being queried: an earlier one's query may outlast it. */
  readonly #asked = new Set<CsiClient>();
  #signal: AbortSignal | undefined;

  constructor(deps: AllocatableRefreshDependencies) {
    this.#deps = deps;
    deps.objects.onChange(() => this.sync());
  }

  start(signal: AbortSignal): void {
    this.#signal = signal;
    this.sync();
  }

  /** Call after a driver was registered or removed, or an object changed. */
  sync(): void {
    const { drivers, objects } = this.#deps;
    const wanted = new Map<string, number>();
    if (this.#signal?.aborted === false) {
      for (const name of drivers.names) {
        const seconds = objects.peek(name)?.spec.nodeAllocatableUpdatePeriodSeconds ?? 0;
        if (seconds > 0) wanted.set(name, seconds * 1000);
      }
    }
    for (const [name, { periodMs, timer }] of this.#refreshes) {
      if (wanted.get(name) === periodMs) continue;
      timer[Symbol.dispose]();
      this.#refreshes.delete(name);
    }
    for (const [name, periodMs] of wanted) if (!this.#refreshes.has(name)) this.#schedule(name, periodMs);
  }

  close(): void {
    for (const { timer } of this.#refreshes.values()) timer[Symbol.dispose]();
    this.#refreshes.clear();
  }

  /**
   * Queries the driver now, unless it is being queried: call when an attachment failed because the node is full. Never
   * rejects.
   */
  async ask(name: string): Promise<void> {
    const { drivers, update, log } = this.#deps;
    const signal = this.#signal;
    if (signal === undefined || signal.aborted || !drivers.has(name)) return;
    const client = drivers.get(name);
    if (this.#asked.has(client)) return;
    this.#asked.add(client);
    try {
      const info = await client.nodeInfo(signal);
      // A call outlasts its registration, and its answer may be out of date then.
      if (drivers.isCurrent(client)) await update(info, signal);
    } catch (error) {
      if (!signal.aborted && drivers.isCurrent(client)) {
        log.warn("cannot update the driver's allocatable count", { driver: name, error: errorMessage(error) });
      }
    } finally {
      this.#asked.delete(client);
    }
  }

  #schedule(name: string, periodMs: number): void {
    const begin = (): Disposable =>
      this.#deps.clock.timer(`the allocatable count of CSI driver ${name}`, periodMs, () => {
        refresh.timer = begin();
        void this.ask(name);
      });
    const refresh: Refresh = { periodMs, timer: begin() };
    this.#refreshes.set(name, refresh);
  }
}
