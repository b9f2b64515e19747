import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { EnsuredImage, EnsureImageRequest } from "../images/image-manager.ts";
import type { Cause } from "../journal/entry.ts";
import type { CgroupResources, CgroupState } from "../ports/cgroups.ts";
import type { Mount } from "./config/container-config.ts";
import type { EnvironmentVariable, NeededObjects } from "./config/environment.ts";
import type { MountedVolumes, VolumeReader } from "./config/mounted-volumes.ts";
import type { UserNamespace } from "./config/namespaces.ts";

/** Gets images (src/images/). */
export interface ImageProvider {
  /** @throws ImageError with the waiting reason, or the signal's reason */
  ensureImageExists(request: EnsureImageRequest, signal: AbortSignal): Promise<EnsuredImage>;
}

/** The pod's cgroup, parent of its containers' (src/resources/). */
export interface PodCgroupProvider {
  ensure(pod: Pod): Promise<void>;
  /** The same for a running pod, unless it is known to be as it should. */
  settle(pod: Pod): Promise<void>;
  /** Raises its limits to what the pod may have, and lowers none. */
  raise(pod: Pod): Promise<void>;
  /** What it should hold. */
  resourcesOf(pod: Pod): CgroupResources;
  read(pod: Pod): Promise<CgroupState>;
  /** The same of one of its containers; undefined where there is none to be found. */
  readContainer(pod: Pod, containerId: string): Promise<CgroupState | undefined>;
  /** Sets some of its values. */
  apply(pod: Pod, resources: CgroupResources): Promise<void>;
}

/** The volumes of pods (src/volumes/). */
export interface VolumeProvider extends VolumeReader {
  /**
   * Brings about what of the pod's volumes is not there or not as it should be; may be called again at any time. First
   * waits a while for what the start needs and for what volumes need that have nothing yet.
   * @throws VolumeError naming each volume that can't be had and why, or the signal's reason
   */
  mount(pod: Pod, needs: NeededObjects, cause: Cause, signal: AbortSignal): Promise<MountedVolumes>;
  /**
   * The container's mounts of volumes, in the order of its spec. Parts of volumes (`subPath`) are bound to places of
   * their own for this start.
   * @throws ContainerConfigError for mounts that can't be had
   */
  mountsFor(
    pod: Pod,
    container: Container,
    environment: readonly EnvironmentVariable[],
    mounted: MountedVolumes,
    signal: AbortSignal,
  ): Promise<Mount[]>;
  /**
   * Brings changed ConfigMaps, Secrets, labels and annotations into the volumes of a running pod. Resolves with false when
   * something of it went wrong that may go well soon, such as a full disk.
   */
  refresh(pod: Pod, cause: Cause, signal: AbortSignal): Promise<boolean>;
}

/** The user namespaces of pods (user-namespaces.ts). */
export interface UserNamespaceProvider {
  /**
   * The pod's user namespace; undefined for a pod that runs with the node's users.
   * @throws ContainerConfigError when it can't have one
   */
  namespaceOf(pod: Pod): Promise<UserNamespace | undefined>;
}
