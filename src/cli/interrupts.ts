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
 * Counts Ctrl-C, SIGTERM and a closed terminal: the first requests a stop, the second an immediate one, the third leaves.
 * Until it is disposed of none of them ends the process.
 */
export class Interrupts implements Disposable {
  readonly #source: SignalSource;
  readonly #first = new AbortController();
  readonly #listener = (): void => this.interrupt();
  readonly #hangup: () => void;
  #count = 0;
  /** Called at each interrupt, with their number so far. */
  onInterrupt: ((count: number) => void) | undefined;

  /** @param closed counts as an interrupt when it aborts: the output has no reader any more */
  constructor(source: SignalSource, closed: AbortSignal) {
    this.#source = source;
    this.#hangup = source.env?.["PODWRIGHT_NOHUP"] === undefined ? this.#listener : () => {};
    for (const signal of SIGNALS) source.on(signal, this.#listenerOf(signal));
    closed.addEventListener("abort", this.#listener, { once: true });
  }

  /** Aborts at the first interrupt. */
  get first(): AbortSignal {
    return this.#first.signal;
  }

  get count(): number {
    return this.#count;
  }

  interrupt(): void {
    this.#count++;
    this.#first.abort(new PodwrightError(ExitCode.failed, "interrupted"));
    this.onInterrupt?.(this.#count);
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) this.#source.off(signal, this.#listenerOf(signal));
  }

  #listenerOf(signal: (typeof SIGNALS)[number]): () => void {
    return signal === "SIGHUP" ? this.#hangup : this.#listener;
  }
}
