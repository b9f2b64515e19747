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
import type { PullEnd } from "./pull-intents.ts";
import type { PullCredentials, PullSecret } from "./pull-credentials.ts";
import { decidePull, judgePullFailure, looksFirst, type PullFailure, type PullPolicy } from "./pull-decision.ts";
import { pullMessages } from "./pull-messages.ts";
import type { PodCredential, PulledWith } from "./pull-record.ts";

export interface ImageManagerLimits extends PullLimits {
  /** Back-off after a pod's first failed pull of an image; doubles with each further one. */
  readonly backOffInitialMs: number;
  readonly backOffMaxMs: number;
}

/**
 * Upstream's values, with two exceptions: pulls are parallel (upstream's default is serial, so that a large image
 * delays every pod, kubernetes/kubernetes#108405), and a pull has a deadline.
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

/** A container's request for an image. */
export interface EnsureImageRequest {
  readonly pod: PodRef;
  readonly container: string;
  /** The volume whose image it is; undefined: the container's own. */
  readonly volume?: string;
  /** As in the spec. */
  readonly image: string;
  readonly pullPolicy: PullPolicy;
  /** The pod's annotations; runtimes may evaluate them. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** The pod's sandbox: some runtimes pull into its own storage. */
  readonly sandboxConfig: SandboxConfig;
  /** The pod's Secrets, in its order. */
  readonly pullSecrets?: readonly PullSecret[];
  /** The pod's service account, for credential providers. */
  readonly account?: PullAccount | undefined;
  /** Keeps the image on the node until its container is created. */
  readonly lease: ImageLease;
  readonly cause: Cause;
}

export interface EnsuredImage {
  /** The runtime's own reference (`sha256:…`), from which containers are created. */
  readonly imageRef: string;
  readonly pulled: boolean;
  /** The image's user; root by default. */
  readonly user: { readonly uid: bigint } | { readonly username: string };
}

/** The result of a lookup or pull, with the ID by which the runtime lists the image. */
interface FoundImage {
  readonly id: string;
  readonly ensured: EnsuredImage;
}

/** A request in progress: the state shared by its steps. */
interface Task {
  readonly request: EnsureImageRequest;
  readonly spec: ImageSpec;
  readonly backOffKey: string;
  /** Registry credentials, looked up once and only when needed. */
  readonly credentials: () => Promise<readonly TrackedCredential[]>;
}

/** Makes images present as pull policies and back-offs allow (upstream's imageManager). */
export class ImageManager {
  readonly #deps: ImageManagerDependencies;
  readonly #clock: Clock;
  readonly #journal: Recorder;
  readonly #puller: ImagePuller;
  readonly #backOff: BackOff;
  /** The last error for each back-off key, repeated during the back-off. */
  readonly #lastFailures = new Map<string, string>();
  /** Back-off keys that skip their next wait; a further failure extends the back-off. */
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
   * Ensures that the image is present, pulling it if the policy requires it.
   * @throws ImageError, or the signal's reason as soon as it aborts
   */
  async ensureImageExists(request: EnsureImageRequest, signal: AbortSignal): Promise<EnsuredImage> {
    signal.throwIfAborted();
    const asked: AskedImage = {};
    try {
      for (;;) {
        const { id, ensured } = await this.#ensure(request, asked, signal);
        // An image that was being removed meanwhile may be gone.
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
    // With policy Never, an absent image is an error before the pull decision.
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
    for (const expired of this.#backOff.gc(nowMs)) {
      this.#lastFailures.delete(expired);
      this.#retries.delete(expired);
    }
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
      data: { ...about(request), event: "Pulling" },
    });
    const outcome = (input: Pick<JournalInput, "result" | "message" | "data">): number =>
      this.#journal.record({
        ...input,
        ...(request.volume !== undefined && { data: { volume: request.volume, ...input.data } }),
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

  /**
   * A pull with the pod's own credentials is marked first: if podwright is killed during it, it gives no other pod
   * access.
   */
  async #pullAndRemember({ request, spec, credentials }: Task, signal: AbortSignal): Promise<PulledImage> {
    const { access } = this.#deps;
    const { image, sandboxConfig } = request;
    const all = await credentials();
    const noted = all.some(({ source, account }) => source !== undefined || account !== undefined);
    if (noted) await access.pulling(image);
    let end: PullEnd = "unknown";
    try {
      const pulled = await this.#puller.pull({ spec, sandboxConfig, credentials: all }, signal);
      const used = this.#pulledWith(pulled.credential);
      if (await access.pulled({ image, imageRef: pulled.imageRef, with: used })) end = "recorded";
      return pulled;
    } catch (error) {
      if (!signal.aborted && !isOutcomeUnknown(error)) end = "failed";
      throw error;
    } finally {
      if (noted) await access.settled(image, end);
    }
  }

  #pullFailed(
    { backOffKey }: Task,
    { reason, message }: PullFailure,
    origin: { readonly entry: number; readonly cause: unknown },
  ): ImageError {
    const nowMs = this.#clock.monotonic();
    // An absent runtime says nothing about the image: no back-off follows, with which the failure would be forgotten.
    if (!isCriError(origin.cause, "Unavailable")) {
      this.#backOff.next(backOffKey, nowMs, nowMs);
      this.#lastFailures.set(backOffKey, `${reason}: ${message}`);
    }
    // No retry time of its own: an attempt during the back-off reports ImagePullBackOff, as users expect.
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

  /** Records a decision; `event` is the reason of the corresponding pod Event. */
  #decided(
    request: EnsureImageRequest,
    what: NameOf<"decision">,
    event: ImageEvent,
    message: string,
    more: Pick<JournalInput, "until"> = {},
  ): number {
    const { pod, container, cause } = request;
    const data = { ...about(request), event };
    return this.#journal.record({ ...more, kind: "decision", what, message, pod, container, cause, data });
  }
}

/** Which image is requested for what, as data of a journal entry. */
function about({ image, volume }: EnsureImageRequest): { readonly image: string; readonly volume?: string } {
  return { image, ...(volume !== undefined && { volume }) };
}

function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof DeadlineError || (isCriError(error) && error.outcomeUnknown);
}

function userOf(image: Image | undefined): EnsuredImage["user"] {
  if (image?.uid !== undefined) return { uid: image.uid.value };
  return image === undefined || image.username === "" ? { uid: 0n } : { username: image.username };
}
