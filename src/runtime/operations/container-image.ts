import type { Pod } from "../../api/pod.ts";
import { ImageError } from "../../images/image-error.ts";
import type { ImageLease } from "../../images/image-leases.ts";
import type { EnsuredImage, EnsureImageRequest } from "../../images/image-manager.ts";
import type { Recorder } from "../../journal/entry.ts";
import type { ContainerToStart } from "../actions/container-decision.ts";
import type { ObjectLookup } from "../config/environment.ts";
import type { VolumeImage } from "../config/mounted-volumes.ts";
import type { SandboxConfig } from "../config/sandbox-config.ts";
import { type ImageVolume, imageVolumesOf } from "../config/volume-images.ts";
import { podRef } from "../pod-ref.ts";
import type { ImageProvider } from "../providers.ts";
import { pullSecretsOf } from "./pull-secrets.ts";
import { StartError } from "./start-error.ts";

/** The images of one start. */
export interface StartImages {
  readonly image: EnsuredImage;
  /** Those of the image volumes that the container mounts, by the volumes' names. */
  readonly volumes: ReadonlyMap<string, VolumeImage>;
}

/** Where an image is pulled for, and what keeps it on the node. */
interface ImagePlace {
  readonly sandboxConfig: SandboxConfig;
  readonly lease: ImageLease;
}

/** The parts of a request that are the same for each image of a start. */
type CommonRequest = Omit<EnsureImageRequest, "image" | "volume" | "pullPolicy">;

/** Gets the images of containers and of their image volumes, with their pods' credentials. */
export class ContainerImages {
  readonly #images: ImageProvider;
  readonly #objects: ObjectLookup;
  readonly #journal: Recorder;

  constructor(images: ImageProvider, objects: ObjectLookup, journal: Recorder) {
    this.#images = images;
    this.#objects = objects;
    this.#journal = journal;
  }

  /**
   * All at once. If some are not available, the container waits for a volume's rather than for its own, as in upstream,
   * which pulls the volumes' images first.
   * @throws StartError, or the signal's reason
   */
  async ensure(pod: Pod, start: ContainerToStart, place: ImagePlace, signal: AbortSignal): Promise<StartImages> {
    const { container, cause } = start;
    const pullSecrets = await pullSecretsOf({ objects: this.#objects, journal: this.#journal }, pod, cause, signal);
    const common: CommonRequest = {
      pod: podRef(pod),
      container: container.name,
      annotations: pod.metadata.annotations ?? {},
      ...place,
      pullSecrets,
      account: this.#objects.account?.(pod),
      cause,
    };
    const own = { ...common, image: container.image ?? "", pullPolicy: container.imagePullPolicy ?? "IfNotPresent" };
    const volumes = this.#volumeImages(common, imageVolumesOf(pod, container), signal);
    const image = this.#images.ensureImageExists(own, signal);
    await Promise.allSettled([volumes, image]);
    try {
      return { volumes: await volumes, image: await image };
    } catch (error) {
      if (!(error instanceof ImageError)) throw error;
      throw new StartError(error.reason, error.message, { cause: error, retryAtMs: error.retryAtMs });
    }
  }

  /** @throws ImageError of the last volume without one, as upstream, or the signal's reason */
  async #volumeImages(
    common: CommonRequest,
    volumes: readonly ImageVolume[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, VolumeImage>> {
    const found = new Map<string, VolumeImage>();
    const requests = volumes.map(async ({ name, reference, pullPolicy }) => {
      const request = { ...common, volume: name, image: reference, pullPolicy };
      const { imageRef } = await this.#images.ensureImageExists(request, signal);
      found.set(name, { imageRef, reference });
    });
    const outcomes = await Promise.allSettled(requests);
    signal.throwIfAborted();
    const failed = outcomes.findLastIndex(({ status }) => status === "rejected");
    const outcome = outcomes[failed];
    if (outcome?.status !== "rejected") return found;
    this.#missing(common, volumes[failed]?.name ?? "", outcome.reason);
    throw outcome.reason;
  }

  #missing({ pod, container, cause }: CommonRequest, volume: string, error: unknown): void {
    if (!(error instanceof ImageError)) return;
    const { reason } = error;
    const message = `no image for volume ${JSON.stringify(volume)} (${reason}): ${error.message}`;
    const data = { volume, reason };
    this.#journal.record({ kind: "observation", what: "VolumeImageMissing", message, pod, container, cause, data });
  }
}
