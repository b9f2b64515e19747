import { BackOff } from "../base/back-off.ts";
import { DeadlineError } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Cause, JournalInput, PodRef, Recorder } from "../journal/entry.ts";
import type { AskedImage, Observer } from "../journal/observer.ts";
import type { NameOf } from "../journal/vocabulary.ts";
import type { ImageEvent } from "../journal/vocabulary/images.ts";
import type { Clock } from "../ports/clock.ts";
import { isCriError } from "../ports/cri.ts";
import type { Image } from "../ports/gen/runtime/v1/api_pb.js";
import type { Hashing } from "../ports/hashing.ts";
import type { PullAccount } from "./credential-provider.ts";
import type { ImageAccess } from "./image-access.ts";
import { ImageError, type ImageErrorReason } from "./image-error.ts";
import type { ImageLease } from "./image-leases.ts";
import {
  type ImageSpec,
  ImagePuller,
  type PulledImage,
  type PullLimits,
  type PullService,
  type SandboxConfig,
} from "./image-puller.ts";
import { ImageReferenceError, withDefaultTag } from "./image-reference.ts";
import { credentialHash, type TrackedCredential } from "./keyring.ts";
import type { PullCredentials, PullSecret } from "./pull-credentials.ts";
import { decidePull, judgePullFailure, looksFirst, type PullFailure, type PullPolicy } from "./pull-decision.ts";
import { pullMessages } from "./pull-messages.ts";
import type { PodCredential, PulledWith } from "./pull-record.ts";

export interface ImageManagerLimits extends PullLimits {
  /** Wait of a pod after the first failed pull of an image; doubles with each further one. */
  readonly backOffInitialMs: number;
  readonly backOffMaxMs: number;
}

/**
 * Upstream's figures, except that pulls run side by side (upstream's default is one after the other, so that one big
 * image holds up every pod, kubernetes/kubernetes#108405) and that a pull has an end.
 */
export const defaultImageLimits: ImageManagerLimits = {
  maxParallelImagePulls: 5,
  registryPullQps: 5,
  registryBurst: 10,
  pullDeadlineMs: 60 * 60_000,
  requestTimeoutMs: 120_000,
  backOffInitialMs: 10_000,
  backOffMaxMs: 300_000,
};

export interface ImageManagerDependencies {
  readonly clock: Clock;
  readonly images: PullService;
  readonly journal: Recorder;
  readonly hashing: Hashing;
  readonly credentials: Pick<PullCredentials, "for">;
  readonly access: Pick<ImageAccess, "isOn" | "isProven" | "pulling" | "pulled" | "settled">;
  readonly observer?: Pick<Observer, "imageAsked" | "accessJudged"> | undefined;
}

/** One container's need of an image. */
export interface EnsureImageRequest {
  readonly pod: PodRef;
  readonly container: string;
  /** As the spec says it. */
  readonly image: string;
  readonly pullPolicy: PullPolicy;
  /** The pod's annotations, which runtimes may read with the image. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** The sandbox in which the image will run: some runtimes pull into the pod's own storage. */
  readonly sandboxConfig: SandboxConfig;
  /** The pod's, in its order. */
  readonly pullSecrets?: readonly PullSecret[];
  /** The pod's service account, as whom credential providers may be asked. */
  readonly account?: PullAccount | undefined;
  /** Keeps the image on the node until its container is made. */
  readonly lease: ImageLease;
  /** Why the image is wanted. */
  readonly cause: Cause;
}

/** An image that is there. */
export interface EnsuredImage {
  /** The runtime's own reference (`sha256:…`), from which containers are created. */
  readonly imageRef: string;
  readonly pulled: boolean;
  /** Whom the image's processes run as; root when it doesn't say. */
  readonly user: { readonly uid: bigint } | { readonly username: string };
}

/** What a look or a pull came to, with the id by which the runtime lists the image. */
interface FoundImage {
  readonly id: string;
  readonly ensured: EnsuredImage;
}

/** One request on its way: what its steps share. */
interface Task {
  readonly request: EnsureImageRequest;
  readonly spec: ImageSpec;
  readonly backOffKey: string;
  /** What a registry may be shown for it; looked up once, and only when it matters. */
  readonly credentials: () => Promise<readonly TrackedCredential[]>;
}

/** Brings images to the node, as pull policies and back-offs allow (upstream's imageManager). */
export class ImageManager {
  readonly #deps: ImageManagerDependencies;
  readonly #clock: Clock;
  readonly #journal: Recorder;
  readonly #puller: ImagePuller;
  readonly #backOff: BackOff;
  /** What the last pull under a back-off key failed with, told again while it is in back-off. */
  readonly #lastFailures = new Map<string, string>();
  /** Back-off keys whose next pull waits for nothing; what it fails with waits longer still. */
  readonly #retries = new Set<string>();

  constructor(deps: ImageManagerDependencies, limits: ImageManagerLimits = defaultImageLimits) {
    const { clock, images, journal } = deps;
    this.#deps = deps;
    this.#clock = clock;
    this.#journal = journal;
    this.#puller = new ImagePuller(clock, images, limits);
    this.#backOff = new BackOff(limits.backOffInitialMs, limits.backOffMaxMs);
  }

  /**
   * Makes sure that the image is there, pulling it when the policy says so.
   * @throws ImageError, or the signal's reason as soon as it aborts
   */
  async ensureImageExists(request: EnsureImageRequest, signal: AbortSignal): Promise<EnsuredImage> {
    signal.throwIfAborted();
    const asked: AskedImage = {};
    try {
      for (;;) {
        const { id, ensured } = await this.#ensure(request, asked, signal);
        // One that was being removed meanwhile may be gone by now.
        if (await request.lease.settle(id)) return ensured;
        signal.throwIfAborted();
      }
    } finally {
      this.#deps.observer?.imageAsked(request.pullPolicy, asked);
    }
  }

  async #ensure(request: EnsureImageRequest, asked: AskedImage, signal: AbortSignal): Promise<FoundImage> {
    const spec: ImageSpec = { image: this.#taggedName(request), annotations: { ...request.annotations } };
    let found: Promise<readonly TrackedCredential[]> | undefined;
    const credentials = (): Promise<readonly TrackedCredential[]> =>
      (found ??= this.#deps.credentials.for(spec.image ?? "", request.pullSecrets ?? [], {
        ...{ pod: request.pod, cause: request.cause, account: request.account, signal },
      }));
    const task: Task = { request, spec, backOffKey: `${request.pod.uid}_${request.image}`, credentials };
    const looks = looksFirst(request.pullPolicy);
    const present = looks ? await this.#look(task, signal) : undefined;
    if (looks) asked.present = present !== undefined;
    const usable = present !== undefined && (await this.#isProven(task, present));
    signal.throwIfAborted();
    // One that is not here and must not be pulled is refused before anybody asks whether a pull is needed.
    if (present !== undefined || request.pullPolicy !== "Never") asked.pulls = !usable;
    switch (decidePull(request.pullPolicy, usable)) {
      case "use":
        this.#decided(request, "ImagePresent", "Pulled", pullMessages.present(request.image, this.#deps.access.isOn));
        return {
          id: present?.id ?? "",
          ensured: { imageRef: present?.id ?? "", pulled: false, user: userOf(present) },
        };
      case "refuse":
        throw this.#refused(request, "ErrImageNeverPull", "ErrImageNeverPull", pullMessages.neverPull(request.image));
      case "pull":
        this.#checkBackOff(task);
        return await this.#pull(task, signal);
    }
  }

  /** Ends the back-offs of the pod's pulls. */
  retryNow({ uid }: PodRef): void {
    for (const key of this.#lastFailures.keys()) if (key.startsWith(`${uid}_`)) this.#retries.add(key);
  }

  #taggedName(request: EnsureImageRequest): string {
    try {
      return withDefaultTag(request.image);
    } catch (error) {
      if (!(error instanceof ImageReferenceError)) throw error;
      const message = pullMessages.invalidName(request.image, error.message);
      throw this.#refused(request, "InvalidImageName", "InspectFailed", message, error);
    }
  }

  async #look({ request, spec }: Task, signal: AbortSignal): Promise<Image | undefined> {
    try {
      return await this.#puller.inspect(spec, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = pullMessages.inspectFailed(request.image, errorMessage(error));
      throw this.#refused(request, "ImageInspectError", "InspectFailed", message, error);
    }
  }

  async #isProven({ request, credentials }: Task, present: Image): Promise<boolean> {
    const secrets = async (): Promise<PodCredential[]> =>
      (await credentials()).flatMap((credential) => {
        const source = this.#pulledWith(credential);
        return source === "node" ? [] : [source];
      });
    return await this.#deps.access.isProven(request.image, present, secrets);
  }

  #pulledWith(used: TrackedCredential | undefined): PulledWith {
    if (used?.account !== undefined) return { account: used.account };
    if (used?.source === undefined) return "node";
    return { ...used.source, credentialHash: credentialHash(this.#deps.hashing, used.credential) };
  }

  #checkBackOff({ request, backOffKey }: Task): void {
    const nowMs = this.#clock.monotonic();
    for (const expired of this.#backOff.gc(nowMs)) this.#lastFailures.delete(expired);
    const endsAtMs = this.#backOff.endsAtSinceUpdate(backOffKey, nowMs);
    if (this.#retries.delete(backOffKey) || endsAtMs === undefined || endsAtMs <= nowMs) {
      this.#lastFailures.delete(backOffKey);
      return;
    }
    const text = pullMessages.backOff(request.image);
    const lastFailure = this.#lastFailures.get(backOffKey);
    const until = Math.round(this.#clock.now() + endsAtMs - nowMs);
    const entry = this.#decided(request, "ImagePullBackOff", "BackOff", text, { until });
    const message = lastFailure === undefined ? text : `${text}: ${lastFailure}`;
    throw new ImageError("ImagePullBackOff", message, { entry, retryAtMs: endsAtMs });
  }

  async #pull(task: Task, signal: AbortSignal): Promise<FoundImage> {
    const { request } = task;
    const began = this.#clock.monotonic();
    const action = this.#journal.record({
      kind: "action",
      what: "PullImage",
      message: pullMessages.pulling(request.image),
      pod: request.pod,
      container: request.container,
      cause: request.cause,
      data: { image: request.image, event: "Pulling" },
    });
    const outcome = (input: Pick<JournalInput, "result" | "message" | "data">): number =>
      this.#journal.record({
        ...input,
        kind: "outcome",
        what: "PullImage",
        pod: request.pod,
        container: request.container,
        of: action,
        durationMs: this.#clock.monotonic() - began,
      });
    let pulled: PulledImage;
    try {
      pulled = await this.#pullAndRemember(task, signal);
    } catch (error) {
      if (signal.aborted) {
        outcome({ result: "unknown", message: `canceled: ${errorMessage(signal.reason)}` });
        signal.throwIfAborted();
      }
      const message = pullMessages.failed(request.image, errorMessage(error));
      const result = isOutcomeUnknown(error) ? "unknown" : "failed";
      const failure = judgePullFailure(request.image, errorMessage(error));
      const entry = outcome({ result, message, data: { event: "Failed", reason: failure.reason } });
      throw this.#pullFailed(task, failure, { entry, cause: error });
    }
    const { imageRef, image, pullMs, credential } = pulled;
    const { namespace, name } = credential?.source ?? {};
    const secret = name === undefined ? {} : { pullSecret: `${namespace}/${name}` };
    const sizeBytes = image?.size ?? 0n;
    const message = pullMessages.pulled(request.image, pullMs, this.#clock.monotonic() - began, sizeBytes);
    outcome({
      result: "done",
      message,
      data: { imageRef, sizeBytes: Number(sizeBytes), pullMs, ...secret, event: "Pulled" },
    });
    return { id: image?.id ?? imageRef, ensured: { imageRef, pulled: true, user: userOf(image) } };
  }

  /** A pull for which the pod has credentials of its own is noted before: killed in its midst, it gives nobody else access. */
  async #pullAndRemember({ request, spec, credentials }: Task, signal: AbortSignal): Promise<PulledImage> {
    const { access } = this.#deps;
    const { image, sandboxConfig } = request;
    const all = await credentials();
    const noted = all.some(({ source, account }) => source !== undefined || account !== undefined);
    if (noted) await access.pulling(image);
    let known = true;
    try {
      const pulled = await this.#puller.pull({ spec, sandboxConfig, credentials: all }, signal);
      known = await access.pulled({ image, imageRef: pulled.imageRef, with: this.#pulledWith(pulled.credential) });
      return pulled;
    } catch (error) {
      known = !signal.aborted && !isOutcomeUnknown(error);
      throw error;
    } finally {
      if (noted) await access.settled(image, known ? "told" : "unknown");
    }
  }

  #pullFailed(
    { backOffKey }: Task,
    { reason, message }: PullFailure,
    origin: { readonly entry: number; readonly cause: unknown },
  ): ImageError {
    const nowMs = this.#clock.monotonic();
    // A runtime that is not there says nothing of the image: back again, it is asked at once.
    if (!isCriError(origin.cause, "Unavailable")) this.#backOff.next(backOffKey, nowMs, nowMs);
    this.#lastFailures.set(backOffKey, `${reason}: ${message}`);
    // Without a time of its own: a try that comes before the back-off is over says ImagePullBackOff, as people expect it.
    return new ImageError(reason, message, origin);
  }

  #refused(
    request: EnsureImageRequest,
    reason: Extract<ImageErrorReason, NameOf<"decision">>,
    event: ImageEvent,
    message: string,
    cause?: unknown,
  ): ImageError {
    return new ImageError(reason, message, { entry: this.#decided(request, reason, event, message), cause });
  }

  /** Records a decision; `event` is the reason of the pod event that says the same. */
  #decided(
    { pod, container, image, cause }: EnsureImageRequest,
    what: NameOf<"decision">,
    event: ImageEvent,
    message: string,
    more: Pick<JournalInput, "until"> = {},
  ): number {
    return this.#journal.record({
      ...more,
      kind: "decision",
      what,
      message,
      pod,
      container,
      cause,
      data: { image, event },
    });
  }
}

function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof DeadlineError || (isCriError(error) && error.outcomeUnknown);
}

function userOf(image: Image | undefined): EnsuredImage["user"] {
  if (image?.uid !== undefined) return { uid: image.uid.value };
  return image === undefined || image.username === "" ? { uid: 0n } : { username: image.username };
}
