import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { Clock } from "../ports/clock.ts";
import type { CriImageService } from "../ports/cri.ts";
import type {
  Image,
  ImageSpecSchema,
  PodSandboxConfigSchema,
  PullImageRequestSchema,
} from "../ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../ports/message-init.ts";
import { TokenBucket } from "../base/token-bucket.ts";
import type { TrackedCredential } from "./keyring.ts";
import { SharedWork } from "./shared-work.ts";

export type SandboxConfig = MessageInit<typeof PodSandboxConfigSchema>;
export type ImageSpec = MessageInit<typeof ImageSpecSchema>;

/** The part of CRI's image service that pulling needs. */
export type PullService = Pick<CriImageService, "imageStatus" | "pullImage">;

/** Limits of pulls (KubeletConfiguration's names, with units). */
export interface PullLimits {
  /** Concurrent pulls; upstream's `serializeImagePulls` is 1, undefined is unlimited. */
  readonly maxParallelImagePulls: number | undefined;
  /** Average rate and burst of pulls; a rate of 0 is unlimited. */
  readonly registryPullQps: number;
  readonly registryBurst: number;
  /** Pulls are canceled after this time. CRI reports no progress, so it counts from the start of the pull. */
  readonly pullDeadlineMs: number;
  /** Timeout of the short calls of the image service. */
  readonly requestTimeoutMs: number;
}

export interface PulledImage {
  readonly imageRef: string;
  /** The runtime's status of the image; undefined when it has been removed meanwhile. */
  readonly image: Image | undefined;
  /** Duration of the pull itself, without the wait for a slot. */
  readonly pullMs: number;
  /** The credential that the registry accepted; undefined: the image is public. */
  readonly credential: TrackedCredential | undefined;
}

export interface PullRequest {
  readonly spec: ImageSpec;
  readonly sandboxConfig: SandboxConfig;
  /** Tried one after the other, equal ones once; none: pull without. */
  readonly credentials: readonly TrackedCredential[];
}

/** Pulls images within the limits. Concurrent requests for one image share a call. */
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

  /** Asks the runtime for the image. Rejects with CriError. */
  async inspect(spec: ImageSpec, signal: AbortSignal): Promise<Image | undefined> {
    const { image } = await this.#images.imageStatus(
      { image: spec },
      { signal, timeoutMs: this.#limits.requestTimeoutMs },
    );
    return image;
  }

  /**
   * Pulls the image, or joins a running pull of it with the same credentials. The signal ends this wait at once; the
   * pull continues while others wait for it. Rejects with CriError, DeadlineError, an error "pull QPS exceeded" or with
   * the result of each credential, or the signal's reason.
   */
  async pull(request: PullRequest, signal: AbortSignal): Promise<PulledImage> {
    const { spec } = request;
    const credentials = withoutRepetition(request.credentials);
    // Requests with other credentials need their own pull: sharing one would grant access by another pod's credentials.
    const key = JSON.stringify([spec.image, spec.runtimeHandler ?? "", credentials]);
    return await this.#shared.join(
      key,
      (workSignal) => this.#pullAlone({ ...request, credentials }, workSignal),
      signal,
    );
  }

  async #pullAlone({ spec, sandboxConfig, credentials }: PullRequest, signal: AbortSignal): Promise<PulledImage> {
    using _place = await this.#places.acquire(signal);
    const began = this.#clock.monotonic();
    const what = `pull of image ${spec.image}`;
    const { imageRef, credential } = await withDeadline(
      this.#clock,
      what,
      this.#limits.pullDeadlineMs,
      signal,
      (limited) => this.#tryEach({ spec, sandboxConfig, credentials }, limited),
    );
    const image = await this.inspect(spec, signal);
    const pullMs = this.#clock.monotonic() - began;
    return { imageRef: imageRef || (image?.id ?? ""), image, pullMs, credential };
  }

  async #tryEach(
    { spec, sandboxConfig, credentials }: PullRequest,
    signal: AbortSignal,
  ): Promise<Pick<PulledImage, "imageRef" | "credential">> {
    // One for all credentials: otherwise wrong ones would use up what the right one needs.
    if (!this.#bucket.tryTake(this.#clock.monotonic())) throw new Error("pull QPS exceeded");
    const failures: unknown[] = [];
    for (const credential of credentials.length === 0 ? [undefined] : credentials) {
      try {
        const auth = authOf(credential);
        const { imageRef } = await this.#images.pullImage({ image: spec, sandboxConfig, ...auth }, { signal });
        return { imageRef, credential };
      } catch (error) {
        // The reason names the wait that passed its deadline; the call's own error only says that it was canceled.
        signal.throwIfAborted();
        failures.push(error);
      }
    }
    const [first] = failures;
    const messages = [...new Set(failures.map(errorMessage))];
    if (messages.length === 1) throw first;
    throw new AggregateError(failures, `[${messages.join(", ")}]`);
  }
}

/** Removes those that are the same to the registry and to other pods; the first origin counts. */
function withoutRepetition(credentials: readonly TrackedCredential[]): readonly TrackedCredential[] {
  const seen = new Set<string>();
  return credentials.filter(({ credential, source, account }) => {
    const { username, password, identityToken } = credential;
    const key = JSON.stringify([username, password, identityToken, source === undefined, account]);
    return !seen.has(key) && seen.add(key);
  });
}

type Auth = Pick<MessageInit<typeof PullImageRequestSchema>, "auth">;

/** With an identity token the user name is omitted, because runtimes would prefer it. */
function authOf(tracked: TrackedCredential | undefined): Auth {
  if (tracked === undefined) return {};
  const { username, password, identityToken } = tracked.credential;
  return { auth: identityToken === "" ? { username, password } : { identityToken } };
}
