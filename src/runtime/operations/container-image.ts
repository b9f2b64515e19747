import type { Pod } from "../../api/pod.ts";
import { ImageError } from "../../images/image-error.ts";
import type { ImageLease } from "../../images/image-leases.ts";
import type { EnsuredImage } from "../../images/image-manager.ts";
import type { Recorder } from "../../journal/entry.ts";
import type { ContainerToStart } from "../actions/container-decision.ts";
import type { ObjectLookup } from "../config/environment.ts";
import type { SandboxConfig } from "../config/sandbox-config.ts";
import { podRef } from "../pod-ref.ts";
import type { ImageProvider } from "../providers.ts";
import { pullSecretsOf } from "./pull-secrets.ts";
import { StartError } from "./start-error.ts";

/** Gets container images, with their pods' credentials. */
export class ContainerImages {
  readonly #images: ImageProvider;
  readonly #objects: ObjectLookup;
  readonly #journal: Recorder;

  constructor(images: ImageProvider, objects: ObjectLookup, journal: Recorder) {
    this.#images = images;
    this.#objects = objects;
    this.#journal = journal;
  }

  /** @throws StartError, or the signal's reason */
  async ensure(
    pod: Pod,
    { container, cause }: ContainerToStart,
    { sandboxConfig, lease }: { readonly sandboxConfig: SandboxConfig; readonly lease: ImageLease },
    signal: AbortSignal,
  ): Promise<EnsuredImage> {
    const pullSecrets = await pullSecretsOf({ objects: this.#objects, journal: this.#journal }, pod, cause, signal);
    const request = {
      pod: podRef(pod),
      container: container.name,
      image: container.image ?? "",
      pullPolicy: container.imagePullPolicy ?? "IfNotPresent",
      annotations: pod.metadata.annotations ?? {},
      sandboxConfig,
      lease,
      pullSecrets,
      account: this.#objects.account?.(pod),
      cause,
    };
    try {
      return await this.#images.ensureImageExists(request, signal);
    } catch (error) {
      if (!(error instanceof ImageError)) throw error;
      throw new StartError(error.reason, error.message, { cause: error, retryAtMs: error.retryAtMs });
    }
  }
}
