import type { Pod } from "../api/pod.ts";
import type { Semaphore } from "../base/semaphore.ts";
import type { EnsuredImage, EnsureImageRequest } from "../images/image-manager.ts";
import type { PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { Random } from "../ports/random.ts";
import type { ObjectLookup } from "./environment.ts";
import type { NodeContext } from "./node-context.ts";

/** Gets images (src/images/). */
export interface ImageProvider {
  /** @throws ImageError with the waiting reason, or the signal's reason */
  ensureImageExists(request: EnsureImageRequest, signal: AbortSignal): Promise<EnsuredImage>;
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
