import { create } from "@bufbuild/protobuf";
import { Emitter } from "../base/emitter.ts";
import { CriError } from "../ports/cri.ts";
import { type Image, ImageSchema } from "../ports/gen/runtime/v1/api_pb.js";
import type { FileSystemUsage } from "../ports/stats-files.ts";
import type { SimRandom } from "./random.ts";

/** Faults of the simulated registry and of image operations. */
export interface RegistryFaults {
  /** Probability that a pull fails at its end. */
  readonly pullFails: number;
  /** Factor of the duration of pulls. */
  readonly pullSlowness: number;
  /** Probability that removing an image fails. */
  readonly removalFails: number;
  /** Probability that the runtime reports a removal that has not happened. */
  readonly removalLies: number;
}

/** Capacity of the image file system in bytes. */
const capacityBytes = 10_000;

/** The size of an image in bytes of that file system. */
export function sizeOf(name: string): number {
  return name.includes("large") ? 1500 : 300;
}

/**
 * Images of the simulated runtime, their file system, and the registry. An image behaves as its name says: `missing`
 * does not exist, `large` takes half a minute, `stuck` never completes while the registry is faulty.
 */
export class SimImages {
  readonly #present = new Set<string>();
  readonly #pinned = new Set<string>();
  readonly #additions = new Emitter<string>();
  readonly #removals = new Emitter<string>();
  readonly #missing = new Emitter<string>();
  /** Bytes on the image file system other than images. */
  #otherBytes = 0;
  #freedMs = Number.NEGATIVE_INFINITY;

  add(image: string): void {
    if (this.has(image)) return;
    this.#present.add(image);
    this.#additions.emit(image);
  }

  /** The runtime marks the image as pinned from now on. */
  pin(image: string): void {
    this.#pinned.add(image);
  }

  isPinned(image: string): boolean {
    return this.#pinned.has(image);
  }

  has(image: string): boolean {
    return this.#present.has(image);
  }

  /** @param image its name or ID */
  remove(image: string): void {
    const name = image.replace(/^sha256:/u, "");
    if (this.#present.delete(name)) this.#removals.emit(name);
  }

  /** Calls back with the name of each image that was pulled or added. */
  onAdded(listener: (name: string) => void): Disposable {
    return this.#additions.on(listener);
  }

  /** Calls back with the name of each removed image. */
  onRemoved(listener: (name: string) => void): Disposable {
    return this.#removals.on(listener);
  }

  /** Calls back with the ID of each missing image that a container was to be created from. */
  onMissing(listener: (id: string) => void): Disposable {
    return this.#missing.on(listener);
  }

  /** A container is created from the image. @param id if it is an ID @throws CriError */
  require(id: string): void {
    if (!id.startsWith("sha256:") || this.status(id) !== undefined) return;
    this.#missing.emit(id);
    throw new CriError("NotFound", "CreateContainer", `image "${id}": not found`);
  }

  /** Sets the share of the file system that other data uses. @param atMs simulated */
  fill(part: number, atMs: number): void {
    if (capacityBytes * part < this.#otherBytes) this.#freedMs = atMs;
    this.#otherBytes = capacityBytes * part;
  }

  /** Simulated ms at which the other data last shrank. */
  get freedMs(): number {
    return this.#freedMs;
  }

  /** The share of the file system that images use. */
  get part(): number {
    return this.#imageBytes() / capacityBytes;
  }

  fileSystem(): FileSystemUsage {
    const images = this.#imageBytes();
    const usedBytes = Math.min(capacityBytes, images + this.#otherBytes);
    return { capacityBytes, usedBytes, availableBytes: capacityBytes - usedBytes, inodes: 0, inodesFree: 0 };
  }

  #imageBytes(): number {
    return [...this.#present].reduce((sum, name) => sum + sizeOf(name), 0);
  }

  /** @param image its name or ID */
  status(image: string): Image | undefined {
    const name = image.replace(/^sha256:/u, "");
    if (!this.has(name)) return undefined;
    const size = BigInt(sizeOf(name));
    const pinned = this.isPinned(name);
    return create(ImageSchema, { id: `sha256:${name}`, repoTags: [name], size, pinned, spec: { image: name } });
  }

  list(): Image[] {
    return [...this.#present].map((image) => this.status(image)).filter((image) => image !== undefined);
  }

  /** The duration of a pull in milliseconds. */
  pullMs(image: string, random: SimRandom, { pullSlowness }: RegistryFaults): number {
    const [from, to] = image.includes("large") ? [20_000, 40_000] : [100, 5000];
    return (from + random.uniform() * (to - from)) * pullSlowness;
  }

  /** Completes a pull. @throws CriError */
  pulled(image: string, random: SimRandom, { pullFails }: RegistryFaults): string {
    if (image.includes("missing")) {
      throw new CriError("NotFound", "PullImage", `failed to pull and unpack image "${image}": not found`);
    }
    if (random.chance(pullFails)) {
      throw new CriError("Unknown", "PullImage", `failed to pull and unpack image "${image}": registry unavailable`);
    }
    this.add(image);
    return `sha256:${image}`;
  }
}
