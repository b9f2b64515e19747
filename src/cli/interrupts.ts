import { ExitCode, PodwrightError } from "../base/errors.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The source of signals: the process, or a test's emitter. */
export interface SignalSource {
  /** Set by the launcher: `PODWRIGHT_NOHUP` if SIGHUP was ignored at the start, as by nohup. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  on(signal: (typeof SIGNALS)[number], listener: () => void): unknown;
  off(signal: (typeof SIGNALS)[number], listener: () => void): unknown;
}

/**
 * Counts requests to end: the first is for a stop, the second for an immediate one, the third leaves. Ctrl-C and SIGTERM are
 * requests. A closed terminal or pipe is the first one at most: it often comes with a Ctrl-C, by the same key or the same
 * shutdown, and asks nothing more urgently. Until it is disposed of none of them ends the process.
 */
export class Interrupts implements Disposable {
  readonly #source: SignalSource;
  readonly #first = new AbortController();
  readonly #listeners: Readonly<Record<(typeof SIGNALS)[number], () => void>>;
  #requests = 0;
  #count = 0;
  /** Called when their number grows, with it. */
  onInterrupt: ((count: number) => void) | undefined;

  /** @param closed aborts when the output has no reader any more */
  constructor(source: SignalSource, closed: AbortSignal) {
    this.#source = source;
    const request = (): void => this.#countTo(++this.#requests);
    const lose = (): void => this.#countTo(1);
    const hangUp = source.env?.["PODWRIGHT_NOHUP"] === undefined ? lose : () => {};
    this.#listeners = { SIGINT: request, SIGTERM: request, SIGHUP: hangUp };
    for (const signal of SIGNALS) source.on(signal, this.#listeners[signal]);
    closed.addEventListener("abort", lose, { once: true });
  }

  /** Aborts at the first interrupt. */
  get first(): AbortSignal {
    return this.#first.signal;
  }

  get count(): number {
    return this.#count;
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) this.#source.off(signal, this.#listeners[signal]);
  }

  #countTo(count: number): void {
    if (count <= this.#count) return;
    this.#count = count;
    this.#first.abort(new PodwrightError(ExitCode.failed, "interrupted"));
    this.onInterrupt?.(count);
  }
}
