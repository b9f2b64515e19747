import { invariant } from "../base/invariant.ts";

/** A container's claim on its image, from before the runtime is asked for it until the container is made. */
export interface ImageLease extends Disposable {
  /**
   * The image was found, or pulled. False when it was being removed since the lease was taken, and after that removal has
   * ended: what was seen may be gone, and the runtime has to be asked again.
   * @param id as the runtime lists the image
   */
  settle(id: string): Promise<boolean>;
}

/** A look at what is in use, and the removals that follow from it. */
export interface ImageSurvey extends Disposable {
  /** Whether somebody holds the image, or held it since the survey began: a container made since is not in what it has seen. */
  isLeased(id: string): boolean;
  /**
   * Removes an image that nobody holds.
   * @returns false, and nothing is done, when somebody does
   */
  remove(id: string, work: () => Promise<void>): Promise<boolean>;
}

interface OpenLease {
  /** Images that were being removed since it was taken. */
  readonly lost: Map<string, Promise<void>>;
}

/**
 * Keeps the collection of images and the starts of containers apart. A start takes a lease before it looks, a collection
 * begins a survey before it lists; so whatever order they come in, one of the two sees the other. No start waits for a
 * removal but for that of its own image.
 */
export class ImageLeases {
  /** How many leases there are on an image. */
  readonly #held = new Map<string, number>();
  readonly #open = new Set<OpenLease>();
  readonly #removals = new Map<string, Promise<void>>();
  readonly #surveys = new Set<Set<string>>();

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
    // A hold that began before this survey is in it from the start, a later one was noted.
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
  }
}
