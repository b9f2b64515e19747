import type { ContainerId } from "../../base/ids.ts";

interface Begun {
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

/**
 * The preStop hooks of this life of podwright. Each container's runs once at most, however often its stop is asked for
 * again (a shorter grace, another try): who asks again waits for the one that has begun. That is why a hook is not ended
 * by the signal of who began it, only by its container's end or by {@link close}.
 */
export class PreStopHooks {
  readonly #begun = new Map<ContainerId, Begun>();
  /** Codes of the causes for which containers have been told to be stopped. */
  readonly #told = new Map<ContainerId, Set<string>>();
  #closed: Error | undefined;

  /**
   * Begins the hook unless it has begun before. Resolves when it has ended, however.
   * @param run rejects only with its signal's reason
   */
  once(id: ContainerId, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const before = this.#begun.get(id);
    if (before !== undefined) return before.ended;
    const controller = new AbortController();
    if (this.#closed !== undefined) controller.abort(this.#closed);
    const ended = run(controller.signal).catch(() => {});
    this.#begun.set(id, { controller, ended });
    return ended;
  }

  /** True the first time that the container is to be stopped for a cause of that code. */
  isNewKill(id: ContainerId, code: string): boolean {
    const told = this.#told.get(id) ?? new Set();
    if (told.has(code)) return false;
    this.#told.set(id, told.add(code));
    return true;
  }

  /** The container is sent its stop signal, or may have been: what is for before that does not begin any more. */
  signalled(id: ContainerId): void {
    if (!this.#begun.has(id)) this.#begun.set(id, { controller: new AbortController(), ended: Promise.resolve() });
  }

  /** The container has stopped: what its hook still does leads to nothing. */
  stopped(id: ContainerId): void {
    this.#begun.get(id)?.controller.abort(new HookCalledOff("its container has stopped"));
  }

  /** The container is gone for good. */
  forget(id: ContainerId): void {
    this.stopped(id);
    this.#begun.delete(id);
    this.#told.delete(id);
  }

  /** Ends every hook that is under way: podwright itself ends. */
  close(): void {
    this.#closed = new HookCalledOff("podwright is stopping");
    for (const { controller } of this.#begun.values()) controller.abort(this.#closed);
  }
}

class HookCalledOff extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AbortError";
  }
}
