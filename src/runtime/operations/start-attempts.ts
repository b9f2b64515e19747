import type { PodUid } from "../../base/ids.ts";
/**
 * The instance of each container that is being created: its restart count, from the request until it is started. An
 * instance that never ran does not count, however often it was requested: the request may have failed, or completed
 * when nobody waited any more, and some runtimes (CRI-O) return that container for the next identical request.
 */
export class StartAttempts {
  readonly #open = new Map<PodUid, Map<string, number>>();

  /** @returns whether that instance was requested before */
  making(uid: PodUid, container: string, attempt: number): boolean {
    const open = this.#open.get(uid) ?? new Map<string, number>();
    const isAgain = open.get(container) === attempt;
    this.#open.set(uid, open.set(container, attempt));
    return isAgain;
  }

  started(uid: PodUid, container: string): void {
    this.#open.get(uid)?.delete(container);
  }

  /** The restart count of the instance that was requested but not started; undefined: none. */
  of(uid: PodUid, container: string): number | undefined {
    return this.#open.get(uid)?.get(container);
  }

  /** The pod is gone. */
  forget(uid: PodUid): void {
    this.#open.delete(uid);
  }
}
