import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { NodeImage } from "./node-status.ts";

/** As upstream: images are listed for the node's status so often at most. */
const periodMs = 30_000;
/** As upstream (MaxNamesPerImageInNodeStatus). */
const namesPerImage = 5;
const timeoutMs = 30_000;

/** The images that a Node's status names, the largest first. */
export class NodeImages {
  readonly #clock: Clock;
  readonly #images: Pick<Cri["images"], "listImages">;
  readonly #limit: number;
  #listed: { readonly images: readonly NodeImage[]; readonly atMs: number } | undefined;

  /** @param limit how many are named; -1: all */
  constructor(clock: Clock, images: Pick<Cri["images"], "listImages">, limit: number) {
    this.#clock = clock;
    this.#images = images;
    this.#limit = limit;
  }

  /** @throws CriError */
  async list(signal: AbortSignal): Promise<readonly NodeImage[]> {
    const nowMs = this.#clock.monotonic();
    if (this.#listed !== undefined && nowMs - this.#listed.atMs < periodMs) return this.#listed.images;
    const { images } = await this.#images.listImages({}, { signal, timeoutMs });
    const all = images
      .map(({ repoDigests, repoTags, size }) => ({
        names: [...repoDigests, ...repoTags].slice(0, namesPerImage),
        sizeBytes: Number(size),
      }))
      .toSorted((a, b) => b.sizeBytes - a.sizeBytes);
    const named = this.#limit < 0 ? all : all.slice(0, this.#limit);
    this.#listed = { images: named, atMs: nowMs };
    return named;
  }
}
