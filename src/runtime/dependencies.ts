import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { Semaphore } from "../base/semaphore.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { Random } from "../ports/random.ts";
import type { ImageUser } from "./container-config.ts";
import type { ObjectLookup } from "./environment.ts";
import type { NodeContext } from "./node-context.ts";
import type { SandboxConfig } from "./sandbox-config.ts";

export interface ImageRequest {
  readonly pod: Pod;
  readonly container: Container;
  /** Some runtimes pull into the pod's own storage. */
  readonly sandboxConfig: SandboxConfig;
  readonly cause: Cause;
}

/** An image that is there, as containers are created from it. */
export interface EnsuredImage {
  /** The runtime's own reference (`sha256:…`). */
  readonly imageRef: string;
  readonly user: ImageUser;
}

/** Gets images (src/images/). */
export interface ImageProvider {
  /** @throws StartError with the waiting reason */
  ensureImage(request: ImageRequest, signal: AbortSignal): Promise<EnsuredImage>;
}

/** The pod's cgroup, parent of its containers' (src/resources/). */
export interface PodCgroupProvider {
  ensure(pod: Pod): Promise<void>;
  /** Nothing there is no error. */
  destroy(pod: PodRef): Promise<void>;
}

/** What acting on pods needs. */
export interface RuntimeDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly files: Files;
  readonly mounts: Mounts;
  readonly cri: Cri;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly images: ImageProvider;
  readonly podCgroups: PodCgroupProvider;
  readonly objects: ObjectLookup;
  readonly node: NodeContext;
  /**
   * How many sandboxes and containers may be started at a time. Containers of a pod that has its sandbox go first, so
   * that under load pods become ready one after the other rather than all at the end.
   */
  readonly starts: Semaphore;
}
