import { withDeadline } from "../base/deadline.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { Clock } from "../ports/clock.ts";
import type { CriImageService } from "../ports/cri.ts";
import type {
  Image,
  ImageSpecSchema,
  PodSandboxConfigSchema,
  PullImageResponse,
} from "../ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../ports/message-init.ts";
import { SharedWork } from "./shared-work.ts";
import { TokenBucket } from "../base/token-bucket.ts";

export type SandboxConfig = MessageInit<typeof PodSandboxConfigSchema>;
export type ImageSpec = MessageInit<typeof ImageSpecSchema>;

/** The part of CRI's image service that pulling needs. */
export type PullService = Pick<CriImageService, "imageStatus" | "pullImage">;

/** How much may be pulled at a time (KubeletConfiguration's names, units added). */
export interface PullLimits {
  /** Pulls at a time; upstream's `serializeImagePulls` is 1, undefined is no limit. */
  readonly maxParallelImagePulls: number | undefined;
  /** Pulls a second on average and at once; a rate of 0 is no limit. */
  readonly registryPullQps: number;
  readonly registryBurst: number;
  /** After so long a pull is given up. CRI tells no progress, so it counts from the start of the pull. */
  readonly pullDeadlineMs: number;
  /** For the short calls of the image service. */
  readonly requestTimeoutMs: number;
}

export interface PulledImage {
  readonly imageRef: string;
  /** What the runtime says of the image; undefined when it was removed in the meantime. */
  readonly image: Image | undefined;
  /** Of the pull itself, without the wait for a place. */
  readonly pullMs: number;
}

/** Pulls images: one call for one image at a time however many want it, within the limits. */
export class ImagePuller {
  readonly #clock: Clock;
  readonly #images: PullService;
  readonly #limits: PullLimits;
  readonly #shared = new SharedWork<PulledImage>();
  readonly #places: Semaphore;
  readonly #bucket: TokenBucket;

  constructor(clock: Clock, images: PullService, limits: PullLimits) {
    this.#clock = clock;
    this.#images = images;
    this.#limits = limits;
    this.#places = new Semaphore(limits.maxParallelImagePulls ?? Number.POSITIVE_INFINITY);
    this.#bucket = new TokenBucket(limits.registryPullQps, limits.registryBurst);
  }

  /** Pulls at this moment and pulls that wait for a place, for diagnostics. */
  get load(): { readonly held: number; readonly waiting: number } {
    return this.#places.load;
  }

  /** Asks the runtime for the image. Rejects with CriError. */
  async inspect(spec: ImageSpec, signal: AbortSignal): Promise<Image | undefined> {
    const { image } = await this.#images.imageStatus(
      { image: spec },
      { signal, timeoutMs: this.#limits.requestTimeoutMs },
    );
    return image;
  }

  /**
   * Pulls the image, or waits for the pull of it that is under way. The signal ends this wait at once; the pull goes on
   * while others wait for it. Rejects with CriError, DeadlineError, an error that says "pull QPS exceeded", or the
   * signal's reason.
   */
  async pull(spec: ImageSpec, sandboxConfig: SandboxConfig, signal: AbortSignal): Promise<PulledImage> {
    const key = JSON.stringify([spec.image, spec.runtimeHandler ?? ""]);
    return await this.#shared.join(key, (workSignal) => this.#pullAlone(spec, sandboxConfig, workSignal), signal);
  }

  async #pullAlone(spec: ImageSpec, sandboxConfig: SandboxConfig, signal: AbortSignal): Promise<PulledImage> {
    using _place = await this.#places.acquire(signal);
    const began = this.#clock.monotonic();
    if (!this.#bucket.tryTake(began)) throw new Error("pull QPS exceeded");
    const { imageRef } = await withDeadline(
      this.#clock,
      `pull of image ${spec.image}`,
      this.#limits.pullDeadlineMs,
      signal,
      (limited) => this.#call(spec, sandboxConfig, limited),
    );
    const image = await this.inspect(spec, signal);
    return { imageRef: imageRef || (image?.id ?? ""), image, pullMs: this.#clock.monotonic() - began };
  }
  async #call(spec: ImageSpec, sandboxConfig: SandboxConfig, signal: AbortSignal): Promise<PullImageResponse> {
    try {
      return await this.#images.pullImage({ image: spec, sandboxConfig }, { signal });
    } catch (error) {
      // The reason says which wait passed its deadline, the call's own error only that it was cancelled.
      signal.throwIfAborted();
      throw error;
    }
  }
}
