import type { Clock } from "../ports/clock.ts";
import { type DirectoryEntry, FileError, type FileInfo } from "../ports/files.ts";
import type { JournalFiles } from "./segments.ts";

/** A clock that stands still until {@link advance}; both of its readings start at the same given time. For tests. */
export class ManualClock implements Clock {
  #nowMs: number;
  #timers: Array<{ readonly name: string; readonly at: number; readonly run: () => void }> = [];

  constructor(startMs = Date.UTC(2026, 10, 20, 14, 2, 0)) {
    this.#nowMs = startMs;
  }

  /** Names of the waits that are running. */
  get waits(): string[] {
    return this.#timers.map((timer) => timer.name);
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs;
  }

  timer(name: string, delayMs: number, callback: () => void): Disposable {
    const timer = { name, at: this.#nowMs + delayMs, run: callback };
    this.#timers.push(timer);
    return {
      [Symbol.dispose]: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }

  async sleep(name: string, delayMs: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    using _timer = this.timer(name, delayMs, resolve);
    const onAbort = (): void => reject(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Lets the time pass, running due timers in order, and what they set off. */
  async advance(byMs: number): Promise<void> {
    const end = this.#nowMs + byMs;
    await settle();
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#nowMs = Math.max(this.#nowMs, due.at);
      due.run();
      await settle();
    }
    this.#nowMs = end;
    await settle();
  }
}

/** Resolves after all that can go on without time passing has gone on. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Files of one directory in memory, with a disk that can be made to refuse. For tests. */
export class MemoryFiles implements JournalFiles {
  readonly contents = new Map<string, string>();
  readonly modes = new Map<string, number>();
  /** While set, appends write this part of their text and then fail with the code. */
  broken: { readonly code: string; readonly writtenPart: number } | undefined;
  /** Paths whose reading fails. */
  readonly unreadable = new Set<string>();

  async makeDirectory(path: string): Promise<void> {
    if (this.unreadable.has(path)) throw new FileError("EACCES", path, `${path}: permission denied`);
  }

  async list(path: string): Promise<DirectoryEntry[]> {
    const prefix = `${path}/`;
    return [...this.contents.keys()]
      .filter((name) => name.startsWith(prefix))
      .map((name) => ({ name: name.slice(prefix.length), type: "file" as const }));
  }

  async read(path: string): Promise<Uint8Array> {
    if (this.unreadable.has(path)) throw new FileError("EIO", path, `${path}: input/output error`);
    return Buffer.from(this.contents.get(path) ?? "");
  }

  async append(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    const text = typeof data === "string" ? data : Buffer.from(data).toString();
    const written = this.broken === undefined ? text : text.slice(0, text.length * this.broken.writtenPart);
    if (!this.contents.has(path)) this.modes.set(path, mode);
    this.contents.set(path, (this.contents.get(path) ?? "") + written);
    if (this.broken !== undefined) throw new FileError(this.broken.code, path, `${path}: no space left on device`);
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    const text = this.contents.get(path);
    if (text === undefined) return undefined;
    return { type: "file", size: text.length, mode: this.modes.get(path) ?? 0, modified: 0, inode: 1, device: 1 };
  }

  async remove(path: string): Promise<void> {
    this.contents.delete(path);
  }
}
