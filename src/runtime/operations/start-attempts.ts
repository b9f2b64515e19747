/**
 * Which instance of each container is being made: its restart count, from when the runtime was asked for it until it is
 * started. What never ran is not counted, however often the runtime was asked: it may have failed, or have come to an end
 * with it when nobody waited any more, and some runtimes (CRI-O) answer with that to who asks for the same again.
 */
export class StartAttempts {
  readonly #open = new Map<string, Map<string, number>>();

  /** @returns whether that instance was asked for before */
  making(uid: string, container: string, attempt: number): boolean {
    const open = this.#open.get(uid) ?? new Map<string, number>();
    const isAgain = open.get(container) === attempt;
    this.#open.set(uid, open.set(container, attempt));
    return isAgain;
  }

  started(uid: string, container: string): void {
    this.#open.get(uid)?.delete(container);
  }

  /** The restart count of the instance that was asked for and not started; undefined where there is none. */
  of(uid: string, container: string): number | undefined {
    return this.#open.get(uid)?.get(container);
  }

  /** The pod is gone. */
  forget(uid: string): void {
    this.#open.delete(uid);
  }
}
