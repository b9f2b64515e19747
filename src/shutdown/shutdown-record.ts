import { errorMessage } from "../base/errors.ts";
import { parseTime } from "../base/time.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

/** Wall clock, milliseconds since the epoch; 0: not yet. */
export interface ShutdownTimes {
  readonly startMs: number;
  readonly endMs: number;
}

/** Go's zero time. */
const noTime = "0001-01-01T00:00:00Z";
const maxBytes = 4096;

/** The times of the last graceful shutdown, in the Go kubelet's file (graceful_node_shutdown_state). */
export class ShutdownRecord {
  readonly #files: Files;
  readonly #log: Logger;
  readonly #path: string;

  constructor(files: Files, log: Logger, rootDirectory: string) {
    this.#files = files;
    this.#log = log;
    this.#path = `${rootDirectory}/graceful_node_shutdown_state`;
  }

  /** Never rejects: an unreadable file is logged, and means no shutdown. */
  async load(): Promise<ShutdownTimes> {
    try {
      if ((await this.#files.stat(this.#path)) === undefined) return { startMs: 0, endMs: 0 };
      const text = new TextDecoder().decode(await this.#files.read(this.#path, maxBytes));
      const { startTime, endTime } = JSON.parse(text) as { readonly startTime?: unknown; readonly endTime?: unknown };
      return { startMs: timeOf(startTime), endMs: timeOf(endTime) };
    } catch (error) {
      this.#log.warn("cannot read the state of the last graceful shutdown", { error: errorMessage(error) });
      return { startMs: 0, endMs: 0 };
    }
  }

  /** Never rejects: the shutdown continues without it. */
  async store({ startMs, endMs }: ShutdownTimes): Promise<void> {
    const text = JSON.stringify({ startTime: textOf(startMs), endTime: textOf(endMs) });
    try {
      await this.#files.writeAtomic(this.#path, text, 0o644);
    } catch (error) {
      this.#log.warn("cannot store the state of the graceful shutdown", { error: errorMessage(error) });
    }
  }
}

function textOf(ms: number): string {
  return ms === 0 ? noTime : new Date(ms).toISOString();
}

function timeOf(text: unknown): number {
  return typeof text === "string" ? Math.max(0, parseTime(text) ?? 0) : 0;
}
