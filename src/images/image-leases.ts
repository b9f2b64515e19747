import { Emitter } from "../base/emitter.ts";
import { invariant } from "../base/invariant.ts";

/** A container's claim on its image, from before its lookup until the container is created. */
export interface ImageLease extends Disposable {
  /**
   * To be called once the image was found or pulled. False when it was being removed since the lease was taken, once
   * that removal has ended: the image may be gone, so the caller must look again.
   * @param id as the runtime lists the image
   */
  settle(id: string): Promise<boolean>;
}

/** A snapshot of what is in use, and the removals based on it. */
export interface ImageSurvey extends Disposable {
  /**
   * Whether the image is leased now, or was since the survey began: the snapshot may lack a container created since.
   */
  isLeased(id: string): boolean;
  /**
   * Removes an image without a lease.
   * @returns false, without removing it, when there is one
   */
  remove(id: string, work: () => Promise<void>): Promise<boolean>;
}

interface OpenLease {
  /** Images that were being removed since it was taken. */
  readonly lost: Map<string, Promise<void>>;
}

/**
 * Keeps garbage collection and container starts apart. A start takes a lease before it looks for its image, and a
 * collection begins a survey before it lists. So in any order, one of the two sees the other. A start waits only for
 * the removal of its own image.
 */
export class ImageLeases {
  /** The number of leases of each image. */
  readonly #held = new Map<string, number>();
  readonly #open = new Set<OpenLease>();
  readonly #removals = new Map<string, Promise<void>>();
  readonly #surveys = new Set<Set<string>>();
  readonly #ends = new Emitter<string>();

  /** Calls back with the ID of each image that a start has had a lease of, when that ends. */
  onEnd(listener: (id: string) => void): Disposable {
    return this.#ends.on(listener);
  }

  take(): ImageLease {
    const open: OpenLease = { lost: new Map(this.#removals) };
    const ids: string[] = [];
    this.#open.add(open);
    return {
      settle: async (id) => {
        const removal = open.lost.get(id);
        if (removal !== undefined) {
          await removal;
          open.lost.delete(id);
          return false;
        }
        this.#hold(id);
        ids.push(id);
        return true;
      },
      [Symbol.dispose]: () => {
        this.#open.delete(open);
        for (const id of ids.splice(0)) this.#letGo(id);
      },
    };
  }

  survey(): ImageSurvey {
    const used = new Set(this.#held.keys());
    this.#surveys.add(used);
    return {
      isLeased: (id) => used.has(id),
      remove: async (id, work) => {
        if (used.has(id)) return false;
        await this.#remove(id, work);
        return true;
      },
      [Symbol.dispose]: () => void this.#surveys.delete(used),
    };
  }

  async #remove(id: string, work: () => Promise<void>): Promise<void> {
    // A lease that began before this survey is in it from the start, a later one is noted.
    invariant("no image is removed that a start holds", !this.#held.has(id), () => id);
    const ended = Promise.withResolvers<void>();
    this.#removals.set(id, ended.promise);
    for (const { lost } of this.#open) lost.set(id, ended.promise);
    try {
      await work();
    } finally {
      this.#removals.delete(id);
      ended.resolve();
    }
  }

  #hold(id: string): void {
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1);
    for (const used of this.#surveys) used.add(id);
  }

  #letGo(id: string): void {
    const others = (this.#held.get(id) ?? 1) - 1;
    if (others === 0) this.#held.delete(id);
    else this.#held.set(id, others);
    this.#ends.emit(id);
  }
}
