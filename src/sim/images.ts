import { create } from "@bufbuild/protobuf";
import { CriError } from "../ports/cri.ts";
import { type Image, ImageSchema } from "../ports/gen/runtime/v1/api_pb.js";
import type { SimRandom } from "./random.ts";

/** How a simulated registry is. */
export interface RegistryFaults {
  /** Probability that a pull fails at its end. */
  readonly pullFails: number;
  /** Pulls take so many times as long. */
  readonly pullSlowness: number;
}

/**
 * Images of the simulated runtime, and the registry. An image is what its name says: `missing` is nowhere, `large` takes
 * half a minute, `stuck` never comes while the registry is at fault.
 */
export class SimImages {
  readonly #present = new Set<string>();

  add(image: string): void {
    this.#present.add(image);
  }

  has(image: string): boolean {
    return this.#present.has(image);
  }

  remove(image: string): void {
    this.#present.delete(image);
  }

  status(image: string): Image | undefined {
    if (!this.has(image)) return undefined;
    return create(ImageSchema, { id: `sha256:${image}`, repoTags: [image], size: 1n, spec: { image } });
  }

  list(): Image[] {
    return [...this.#present].map((image) => this.status(image)).filter((image) => image !== undefined);
  }

  /** How long a pull takes, in milliseconds. */
  pullMs(image: string, random: SimRandom, { pullSlowness }: RegistryFaults): number {
    const [from, to] = image.includes("large") ? [20_000, 40_000] : [100, 5000];
    return (from + random.uniform() * (to - from)) * pullSlowness;
  }

  /** A pull at its end. @throws CriError */
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
