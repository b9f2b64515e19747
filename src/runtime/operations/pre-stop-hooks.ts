import type { ContainerId } from "../../base/ids.ts";

interface Begun {
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

/**
 * The preStop hooks of this run. Each container's hook runs at most once, however often its stop is requested (a
 * shorter grace period, a retry): a repeated request waits for the running hook. Therefore a hook is ended only by its
 * container's end or by {@link close}, not by the signal of who started it.
 */
export class PreStopHooks {
  readonly #begun = new Map<ContainerId, Begun>();
  /** Cause codes for which containers were already reported as being stopped. */
  readonly #reported = new Map<ContainerId, Set<string>>();
  #closed: Error | undefined;

  /**
   * Starts the hook unless already started. Resolves when it has ended, however.
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

  /** True the first time that the container is stopped for a cause of that code. */
  isNewKill(id: ContainerId, code: string): boolean {
    const codes = this.#reported.get(id) ?? new Set();
    if (codes.has(code)) return false;
    this.#reported.set(id, codes.add(code));
    return true;
  }

  /** The stop signal has been, or may have been, sent: no hook starts any more. */
  signalled(id: ContainerId): void {
    if (!this.#begun.has(id)) this.#begun.set(id, { controller: new AbortController(), ended: Promise.resolve() });
  }

  /** The container has stopped: its hook has become pointless. */
  stopped(id: ContainerId): void {
    this.#begun.get(id)?.controller.abort(new HookCalledOff("the container has stopped"));
  }

  /** The container is removed. */
  forget(id: ContainerId): void {
    this.stopped(id);
    this.#begun.delete(id);
    this.#reported.delete(id);
  }

  /** Ends every running hook: podwright stops. */
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
