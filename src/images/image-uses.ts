import * as z from "zod";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

interface ImageUsesDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "read" | "writeAtomic" | "makeDirectory">;
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
/** While the same images are in use, the file is written this often. */
const writePeriodMs = 3_600_000;

/**
 * When each image was first seen and last in use. Kept in a file, so that after a restart what is collected is still what
 * was not used for longest. Ages are kept by the monotonic clock: a wall clock that jumps makes no image old.
 */
export class ImageUses {
  readonly #deps: ImageUsesDependencies;
  readonly #path: string;
  #uses = new Map<string, Use>();
  /** Images and whether each is in use, as the file has them. */
  #written = "";
  #writtenMs = Number.NEGATIVE_INFINITY;
  #state = "";

  /** @param path of the file */
  constructor(deps: ImageUsesDependencies, path: string) {
    this.#deps = deps;
    this.#path = path;
  }

  /** Reads what an earlier life has seen. Never rejects: without it images count as seen for the first time. */
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
      log.warn("cannot read when images were last used", { path: this.#path, error: errorMessage(error) });
    }
  }

  /** Takes note of the images that there are, and of those in use. @returns whether some are gone since the last time */
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

  of(id: string): Use {
    return this.#uses.get(id) ?? { detectedMs: this.#deps.clock.monotonic(), lastUsedMs: undefined };
  }

  /** Writes the file when other images are there or in use than it says, otherwise seldom. Never rejects. */
  async save(): Promise<void> {
    const isDue = this.#deps.clock.monotonic() - this.#writtenMs >= writePeriodMs;
    if (this.#state !== "" && (isDue || this.#state !== this.#written)) await this.#write();
  }

  /** Writes what is known by now, for the next life. Never rejects. */
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
