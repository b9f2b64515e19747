import type { Processes } from "../ports/processes.ts";

/** A terminal's size in characters. */
export interface TerminalSize {
  readonly Width: number;
  readonly Height: number;
}

const endings = ["SIGTERM", "SIGHUP"] as const;

/**
 * This command's terminal in raw mode, for a remote process: it receives every key, including Ctrl-C. Disposing of it
 * restores the terminal.
 */
export class LocalTerminal implements Disposable {
  readonly #restore = (): void => void process.stdin.setRawMode(false);
  readonly #onEnding = (signal: NodeJS.Signals): void => {
    this[Symbol.dispose]();
    process.kill(process.pid, signal);
  };
  #isOver = false;

  /** Undefined: standard input is not a terminal. */
  static async take(processes: Pick<Processes, "run">): Promise<LocalTerminal | undefined> {
    if (!process.stdin.isTTY) return undefined;
    const terminal = new LocalTerminal();
    // Node.js leaves output processing on: a line feed would also return to the first column, and full-screen programs
    // would draw in the wrong place. Without stty it stays so.
    await processes.run("stty", ["-F", `/proc/${process.pid}/fd/0`, "-opost"], { timeoutMs: 5000 }).catch(() => {});
    return terminal;
  }

  private constructor() {
    process.stdin.setRawMode(true);
    process.once("exit", this.#restore);
    for (const signal of endings) process.once(signal, this.#onEnding);
  }

  /** Calls back with the current size, and at each change. */
  onSize(callback: (size: TerminalSize) => void): Disposable {
    const tell = (): void => {
      const [Width = 0, Height = 0] = process.stdout.isTTY ? process.stdout.getWindowSize() : [];
      if (Width > 0 && Height > 0) callback({ Width, Height });
    };
    tell();
    process.stdout.on("resize", tell);
    return { [Symbol.dispose]: () => process.stdout.off("resize", tell) };
  }

  [Symbol.dispose](): void {
    if (this.#isOver) return;
    this.#isOver = true;
    process.off("exit", this.#restore);
    for (const signal of endings) process.off(signal, this.#onEnding);
    this.#restore();
  }
}
