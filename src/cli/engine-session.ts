import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { JournalEntry } from "../journal/entry.ts";
import type { MachineContext } from "./machine-context.ts";
import { type EngineClient, EngineGone } from "./engine-client.ts";
import { engineLogPath, ensureEngine, type EngineStart } from "./engine-process.ts";

const MAX_RECOVERIES = 3;
const RECOVERY_WINDOW_MS = 60_000;

/**
 * Calls to an engine that survive it: when the engine ends, the session says so, starts it again (its pods keep running)
 * and repeats the call. All calls are idempotent.
 */
export class EngineSession {
  readonly #context: MachineContext;
  readonly #start: EngineStart;
  readonly #signal: AbortSignal;
  #recoveries: number[] = [];
  #recovering: Promise<void> | undefined;

  /** @param signal aborts the wait for a starting engine */
  constructor(context: MachineContext, start: EngineStart, signal: AbortSignal) {
    this.#context = context;
    this.#start = start;
    this.#signal = signal;
  }

  async call<T>(work: (engine: EngineClient) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work(this.#context.engine);
      } catch (error) {
        if (!(error instanceof EngineGone)) throw error;
        await this.recover();
      }
    }
  }

  /** Journal entries from `sinceSeq` on, each once, across restarts of the engine; ends when the signal aborts. */
  async *follow(sinceSeq: number, signal: AbortSignal): AsyncGenerator<JournalEntry> {
    let next = sinceSeq;
    while (!signal.aborted) {
      try {
        for await (const entry of this.#context.engine.follow({ sinceSeq: next }, signal)) {
          // An entry is sent again when it is repeated, with a higher count.
          if (entry.seq < next) continue;
          next = entry.seq + 1;
          yield entry;
        }
      } catch (error) {
        if (!(error instanceof EngineGone)) throw error;
        await this.recover();
      }
    }
  }

  /** Starts the engine again; concurrent calls share one start. */
  async recover(): Promise<void> {
    this.#recovering ??= this.#recover().finally(() => {
      this.#recovering = undefined;
    });
    await this.#recovering;
  }

  async #recover(): Promise<void> {
    const { clock, terminal } = this.#context;
    const now = clock.monotonic();
    this.#recoveries = this.#recoveries.filter((time) => now - time < RECOVERY_WINDOW_MS);
    if (this.#recoveries.length >= MAX_RECOVERIES) {
      throw new PodwrightError(ExitCode.failed, `the engine ended ${MAX_RECOVERIES + 1} times within a minute`, {
        remedy: `see ${engineLogPath(this.#context)}; the pods keep running`,
      });
    }
    this.#recoveries.push(now);
    terminal.warn(terminal.warnPaint.caution("podwright: the engine stopped; restarting it, its pods keep running"));
    await ensureEngine(this.#context, this.#start, this.#signal);
  }
}
