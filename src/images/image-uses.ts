import * as z from "zod";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

interface ImageUsesDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "read" | "rename" | "writeAtomic" | "makeDirectory">;
  readonly log: Logger;
}

/** Monotonic ms. */
interface Use {
  readonly detectedMs: number;
  readonly lastUsedMs: number | undefined;
}

/** Wall clock ms. */
const Remembered = z.object({
  images: z.record(z.string(), z.object({ detectedAt: z.number(), lastUsedAt: z.number().optional() })),
});

const maxBytes = 16 << 20;
/** Minimum interval of writes while the same images are in use. */
const writePeriodMs = 3_600_000;

/**
 * When each image was first seen and last used. Stored in a file, so that garbage collection still starts with the
 * longest unused images after a restart. Ages follow the monotonic clock: a wall clock jump makes no image old.
 */
export class ImageUses {
  readonly #deps: ImageUsesDependencies;
  readonly #path: string;
  #uses = new Map<string, Use>();
  /** The images in the file, with whether each is in use. */
  #written = "";
  #writtenMs = Number.NEGATIVE_INFINITY;
  #state = "";

  /** @param path of the file */
  constructor(deps: ImageUsesDependencies, path: string) {
    this.#deps = deps;
    this.#path = path;
  }

  /**
   * Reads the earlier run's file. Never rejects: without it images count as first seen now, and so they do if it is
   * unreadable; it is then kept as `<path>.bad`.
   */
  async load(): Promise<void> {
    const { clock, files, log } = this.#deps;
    try {
      const text = new TextDecoder().decode(await files.read(this.#path, maxBytes));
      const ms = (at: number): number => clock.monotonic() - Math.max(0, clock.now() - at);
      for (const [id, { detectedAt, lastUsedAt }] of Object.entries(Remembered.parse(JSON.parse(text)).images)) {
        this.#uses.set(id, { detectedMs: ms(detectedAt), lastUsedMs: lastUsedAt && ms(lastUsedAt) });
      }
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return;
      const aside = `${this.#path}.bad`;
      log.warn("cannot read when images were last used", { path: this.#path, aside, error: errorMessage(error) });
      this.#uses = new Map();
      await files.rename(this.#path, aside).catch((renaming: unknown) => {
        log.warn("cannot rename the unreadable record of images' uses", { error: errorMessage(renaming) });
      });
    }
  }

  /** Updates the images and those in use. @returns whether some have been removed since the last call */
  observe(ids: readonly string[], inUse: ReadonlySet<string>): boolean {
    const nowMs = this.#deps.clock.monotonic();
    const before = this.#uses;
    this.#uses = new Map(
      ids.map((id) => {
        const { detectedMs = nowMs, lastUsedMs } = before.get(id) ?? {};
        return [id, { detectedMs, lastUsedMs: inUse.has(id) ? nowMs : lastUsedMs }];
      }),
    );
    this.#state = JSON.stringify(ids.map((id) => `${id} ${inUse.has(id)}`).toSorted());
    return [...before.keys()].some((id) => !this.#uses.has(id));
  }

  /**
   * A start has used the image just now: its container may be gone before the next {@link observe}, which then does not
   * know of it.
   */
  note(id: string): void {
    const nowMs = this.#deps.clock.monotonic();
    this.#uses.set(id, { detectedMs: this.#uses.get(id)?.detectedMs ?? nowMs, lastUsedMs: nowMs });
    // The file has an earlier use.
    this.#written = "";
  }

  /** The image was removed: pulled again, it counts as new. */
  forget(id: string): void {
    this.#uses.delete(id);
  }

  of(id: string): Use {
    return this.#uses.get(id) ?? { detectedMs: this.#deps.clock.monotonic(), lastUsedMs: undefined };
  }

  /** Writes the file when images or their use have changed, otherwise seldom. Never rejects. */
  async save(): Promise<void> {
    const isDue = this.#deps.clock.monotonic() - this.#writtenMs >= writePeriodMs;
    if (this.#state !== "" && (isDue || this.#state !== this.#written)) await this.#write();
  }

  /** Writes the current state for the next run. Never rejects. */
  async close(): Promise<void> {
    if (this.#state !== "") await this.#write();
  }

  async #write(): Promise<void> {
    const { clock, files, log } = this.#deps;
    const state = this.#state;
    const at = (ms: number): number => Math.round(clock.now() - (clock.monotonic() - ms));
    const images = Object.fromEntries(
      [...this.#uses].map(([id, { detectedMs, lastUsedMs }]) => {
        return [id, { detectedAt: at(detectedMs), lastUsedAt: lastUsedMs === undefined ? undefined : at(lastUsedMs) }];
      }),
    );
    try {
      await files.makeDirectory(this.#path.slice(0, this.#path.lastIndexOf("/")), 0o700);
      await files.writeAtomic(this.#path, `${JSON.stringify({ images })}\n`, 0o600);
      this.#written = state;
      this.#writtenMs = clock.monotonic();
    } catch (error) {
      log.warn("cannot record when images were last used", { path: this.#path, error: errorMessage(error) });
    }
  }
}
