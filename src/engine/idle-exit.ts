import type { Clock } from "../ports/clock.ts";

/** Time for a client that has just started the engine to deliver its pods. */
const firstWaitMs = 30_000;
/** Between two pods there may be a moment without any (`stop` and `run` again): that is no reason to end. */
const waitMs = 2_000;

/** Reports when an engine has been idle for a while. */
export class IdleExit {
  readonly #clock: Clock;
  #node: { readonly isEmpty: boolean } | undefined;
  readonly #onIdle: () => void;
  readonly #hasWork: () => boolean;
  #timer: Disposable | undefined;

  /** @param hasWork whether something is left to do without pods, such as unstaging their volumes: until then it is not idle */
  constructor(clock: Clock, onIdle: () => void, hasWork: () => boolean = () => false) {
    this.#clock = clock;
    this.#onIdle = onIdle;
    this.#hasWork = hasWork;
  }

  /** The engine of this node has started. */
  started(node: { readonly isEmpty: boolean }): void {
    this.#node = node;
    this.#wait(firstWaitMs);
  }

  /** A pod was removed: perhaps the last one. */
  podGone(): void {
    if (this.#node?.isEmpty === true) this.#wait(waitMs);
  }

  #wait(delayMs: number): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = this.#clock.timer("pods to arrive at an idle engine", delayMs, () => {
      if (this.#node?.isEmpty !== true) return;
      if (this.#hasWork()) this.#wait(waitMs);
      else this.#onIdle();
    });
  }
}
