import { errorMessage } from "../base/errors.ts";
import { bootId } from "../base/boot-id.ts";
import { parseTime } from "../base/time.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { BegunGroup } from "./periods.ts";

/** Wall clock, milliseconds since the epoch; 0: not yet. */
export interface ShutdownTimes {
  readonly startMs: number;
  readonly endMs: number;
}

/** A shutdown as an earlier run left it. */
export interface StoredShutdown extends ShutdownTimes {
  /** How far it has come, if that was since the machine started. */
  readonly group?: BegunGroup | undefined;
}

/** Go's zero time. */
const noTime = "0001-01-01T00:00:00Z";
const maxBytes = 4096;

/**
 * The last graceful shutdown, in the Go kubelet's file (graceful_node_shutdown_state), which ignores the fields for its
 * groups.
 */
export class ShutdownRecord {
  readonly #files: Files;
  readonly #log: Logger;
  readonly #path: string;
  /** Writes one at a time, so the newest comes last; never rejects. */
  #turn: Promise<void> = Promise.resolve();

  constructor(files: Files, log: Logger, rootDirectory: string) {
    this.#files = files;
    this.#log = log;
    this.#path = `${rootDirectory}/graceful_node_shutdown_state`;
  }

  /** Never rejects: an unreadable file is logged, and means no shutdown. */
  async load(): Promise<StoredShutdown> {
    try {
      if ((await this.#files.stat(this.#path)) === undefined) return { startMs: 0, endMs: 0 };
      const text = new TextDecoder().decode(await this.#files.read(this.#path, maxBytes));
      const { startTime, endTime, boot, group } = JSON.parse(text) as Partial<Record<string, unknown>>;
      const times = { startMs: timeOf(startTime), endMs: timeOf(endTime) };
      const isOfThisBoot = typeof boot === "string" && boot !== "" && boot === (await bootId(this.#files));
      return { ...times, ...(isOfThisBoot && { group: groupFrom(group) }) };
    } catch (error) {
      this.#log.warn("cannot read the state of the last graceful shutdown", { error: errorMessage(error) });
      return { startMs: 0, endMs: 0 };
    }
  }

  /** Never rejects: the shutdown continues without it. */
  async store(shutdown: StoredShutdown): Promise<void> {
    const turn = this.#turn.then(async () => this.#write(shutdown));
    this.#turn = turn;
    await turn;
  }

  async #write({ startMs, endMs, group }: StoredShutdown): Promise<void> {
    const times = { startTime: textOf(startMs), endTime: textOf(endMs) };
    try {
      const own = group && {
        boot: await bootId(this.#files),
        group: { priority: group.priority, startTime: textOf(group.startMs) },
      };
      const text = JSON.stringify({ ...times, ...own });
      await this.#files.writeAtomic(this.#path, text, 0o644);
    } catch (error) {
      this.#log.warn("cannot store the state of the graceful shutdown", { error: errorMessage(error) });
    }
  }
}

function textOf(ms: number): string {
  return ms === 0 ? noTime : new Date(ms).toISOString();
}

function groupFrom(value: unknown): BegunGroup | undefined {
  const { priority, startTime } = (value ?? {}) as Partial<Record<string, unknown>>;
  const startMs = timeOf(startTime);
  return typeof priority === "number" && startMs > 0 ? { priority, startMs } : undefined;
}

function timeOf(text: unknown): number {
  return typeof text === "string" ? Math.max(0, parseTime(text) ?? 0) : 0;
}
