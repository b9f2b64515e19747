import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { EnsuredImage, EnsureImageRequest } from "../images/image-manager.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { CgroupResources, CgroupState } from "../ports/cgroups.ts";
import type { Mount } from "./config/container-config.ts";
import type { EnvironmentVariable, NeededObjects } from "./config/environment.ts";
import type { MountedVolumes, VolumeReader } from "./config/mounted-volumes.ts";
import type { UserNamespace } from "./config/namespaces.ts";

/** Gets images (src/images/). */
export interface ImageProvider {
  /** @throws ImageError with the waiting reason, or the signal's reason */
  ensureImageExists(request: EnsureImageRequest, signal: AbortSignal): Promise<EnsuredImage>;
  /** Ends the back-offs of the pod's image pulls. */
  retryNow(pod: PodRef): void;
}

/** The pod's cgroup, parent of its containers' (src/resources/). */
export interface PodCgroupProvider {
  ensure(pod: Pod): Promise<void>;
  /** The same for a running pod, unless known to be correct. */
  settle(pod: Pod): Promise<void>;
  /** Raises its limits to the pod's, and lowers none. */
  raise(pod: Pod): Promise<void>;
  /** Its desired values. */
  resourcesOf(pod: Pod): CgroupResources;
  read(pod: Pod): Promise<CgroupState>;
  /** The same of one of its containers; undefined if not found. */
  readContainer(pod: Pod, containerId: string): Promise<CgroupState | undefined>;
  /** Sets some of its values. */
  apply(pod: Pod, resources: CgroupResources): Promise<void>;
}

/** The volumes of pods (src/volumes/). */
export interface VolumeProvider extends VolumeReader {
  /**
   * Sets up the pod's volumes that are missing or outdated; idempotent. First waits a while for the objects that the
   * start and new volumes need.
   * @throws VolumeError with each failed volume and why, or the signal's reason
   */
  mount(pod: Pod, needs: NeededObjects, cause: Cause, signal: AbortSignal): Promise<MountedVolumes>;
  /**
   * The container's volume mounts, in spec order. A `subPath` gets a bind mount of its own for this start.
   * @throws ContainerConfigError for mounts that are not possible
   */
  mountsFor(
    pod: Pod,
    container: Container,
    environment: readonly EnvironmentVariable[],
    mounted: MountedVolumes,
    signal: AbortSignal,
  ): Promise<Mount[]>;
  /**
   * Updates ConfigMaps, Secrets, labels and annotations in the volumes of a running pod. Resolves with false after a
   * failure that may be temporary, such as a full disk.
   */
  refresh(pod: Pod, cause: Cause, signal: AbortSignal): Promise<boolean>;
  /** Ends the pauses between attempts to set up the pod's volumes. */
  retryNow(pod: PodRef): void;
}

/** The user namespaces of pods (user-namespaces.ts). */
export interface UserNamespaceProvider {
  /**
   * The pod's user namespace; undefined: the node's users.
   * @throws ContainerConfigError when none can be assigned
   */
  namespaceOf(pod: Pod): Promise<UserNamespace | undefined>;
}
