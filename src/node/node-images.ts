import { isDeepStrictEqual } from "node:util";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeImage } from "./node-status.ts";

/** As upstream: the minimum interval of listing images for the node's status. */
const periodMs = 30_000;
/** As upstream (MaxNamesPerImageInNodeStatus). */
const namesPerImage = 5;
const timeoutMs = 30_000;

/** The images in a Node's status, the largest first. */
export class NodeImages {
  readonly #clock: Clock;
  readonly #images: Pick<Cri["images"], "listImages">;
  readonly #limit: number;
  readonly #log: Logger;
  readonly #onChange: () => void;
  #listing: Promise<readonly NodeImage[]> | undefined;
  #listed: { readonly images: readonly NodeImage[]; readonly atMs: number } | undefined;

  /**
   * @param limit the maximum number; -1: all
   * @param onChange called when the list changed
   */
  constructor(
    deps: { readonly clock: Clock; readonly images: Pick<Cri["images"], "listImages">; readonly log: Logger },
    limit: number,
    onChange: () => void,
  ) {
    this.#clock = deps.clock;
    this.#images = deps.images;
    this.#log = deps.log;
    this.#limit = limit;
    this.#onChange = onChange;
  }

  /**
   * The last list. Only the first one is awaited: a hanging or failing runtime must neither delay statuses nor clear
   * the list.
   * @throws CriError while there is no list
   */
  async list(signal: AbortSignal): Promise<readonly NodeImage[]> {
    const isDue = this.#listed === undefined || this.#clock.monotonic() - this.#listed.atMs >= periodMs;
    if (isDue) this.#listing ??= this.#list(signal).finally(() => (this.#listing = undefined));
    if (this.#listed === undefined && this.#listing !== undefined) return await this.#listing;
    this.#listing?.catch((error: unknown) => {
      if (!signal.aborted) this.#log.warn("cannot list the node's images", { error: errorMessage(error) });
    });
    return this.#listed?.images ?? [];
  }

  async #list(signal: AbortSignal): Promise<readonly NodeImage[]> {
    const atMs = this.#clock.monotonic();
    const { images } = await this.#images.listImages({}, { signal, timeoutMs });
    const all = images
      // A stable order for equal sizes, or each list would be a change.
      .toSorted((a, b) => Number(b.size - a.size) || (a.id < b.id ? 1 : -1))
      .map(({ repoDigests, repoTags, size }) => ({
        names: [...repoDigests, ...repoTags].slice(0, namesPerImage),
        sizeBytes: Number(size),
      }));
    const named = this.#limit < 0 ? all : all.slice(0, this.#limit);
    const isNews = this.#listed !== undefined && !isDeepStrictEqual(this.#listed.images, named);
    this.#listed = { images: named, atMs };
    if (isNews) this.#onChange();
    return named;
  }
}
