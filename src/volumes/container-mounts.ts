import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { VolumeMount } from "../api/volume.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { Semaphore } from "../base/semaphore.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Files } from "../ports/files.ts";
import { MountPropagation } from "../ports/gen/runtime/v1/api_pb.js";
import type { Logger } from "../ports/log.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import type { Mount } from "../runtime/config/container-config.ts";
import { ContainerConfigError } from "../runtime/config/container-config-error.ts";
import type { EnvironmentVariable } from "../runtime/config/environment.ts";
import type { MountedVolume, MountedVolumes } from "../runtime/config/mounted-volumes.ts";
import { mayBeRecursivelyReadOnly, type PodFeatures, requireHandler } from "../runtime/config/pod-features.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { isRecursivelyReadOnly, mountPropagation } from "./mount-options.ts";
import { SubPathRemarks } from "./sub-path-remarks.ts";
import { bindSubPath, subPathOf } from "./sub-path.ts";
import type { VolumePaths } from "./volume-paths.ts";

export interface ContainerMountsDependencies {
  readonly files: Files;
  readonly volumeFiles: VolumeFiles;
  readonly mounts: Mounts;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly node: Pick<NodeContext, "seLinux">;
  readonly features: (pod: Pod) => Pick<PodFeatures, "handler" | "recursiveReadOnlyMounts">;
}

/** A container about to start, with the volumes of its pod. */
export interface MountingContainer {
  readonly pod: Pod;
  readonly container: Container;
  readonly environment: readonly EnvironmentVariable[];
  readonly mounted: MountedVolumes;
}

/** A volumeMount with a subPath. */
interface SubPathMount {
  readonly mount: VolumeMount;
  /** The mount's index in its container. */
  readonly index: number;
  readonly volume: MountedVolume;
  readonly subPath: string;
}

/** Turns a container's volumeMounts into the runtime's mounts. */
export class ContainerMounts {
  readonly #deps: ContainerMountsDependencies;
  readonly #remarks: SubPathRemarks;

  constructor(deps: ContainerMountsDependencies) {
    this.#deps = deps;
    this.#remarks = new SubPathRemarks(deps.journal);
  }

  /** The pod is gone. */
  forget(uid: PodUid): void {
    this.#remarks.forget(uid);
  }

  /**
   * In spec order.
   * @param turn the pod's volume lock
   * @throws ContainerConfigError for impossible mounts
   */
  async of(starting: MountingContainer, paths: VolumePaths, turn: Semaphore, signal: AbortSignal): Promise<Mount[]> {
    const { pod, container, environment, mounted } = starting;
    const features = this.#deps.features(pod);
    const mounts: Mount[] = [];
    for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
      const volume = mounted.get(mount.name);
      if (volume === undefined) {
        const names = `${JSON.stringify(mount.name)} to mount into container ${JSON.stringify(container.name)}`;
        throw new ContainerConfigError(`cannot find volume ${names}`);
      }
      const propagation = mountPropagation(mount);
      // An IfPossible that is dropped would show nobody that the mounts below are writable.
      if (mayBeRecursivelyReadOnly(mount)) requireHandler(pod, features);
      const recursiveReadOnly = isRecursivelyReadOnly(mount, features.recursiveReadOnlyMounts);
      const subPath = subPathOf(mount, environment);
      let source = sourceOf(volume, pod, subPath);
      if (source.image === undefined && subPath !== "") {
        using _turn = await turn.acquire(signal);
        source = { hostPath: await this.#bind(starting, { mount, index, volume, subPath }, paths) };
      }
      mounts.push({
        containerPath: mount.mountPath.startsWith("/") ? mount.mountPath : `/${mount.mountPath}`,
        ...source,
        ...((volume.readOnly || mount.readOnly === true) && { readonly: true }),
        ...(recursiveReadOnly && { recursiveReadOnly }),
        ...((await this.#isLabelled(volume)) && { selinuxRelabel: true }),
        ...(propagation !== MountPropagation.PROPAGATION_PRIVATE && { propagation }),
      });
    }
    return mounts;
  }

  /** A file system without labels of its own, as one that is mounted with a context, is none that a runtime can label. */
  async #isLabelled({ own, hostPath }: MountedVolume): Promise<boolean> {
    if (!own || !this.#deps.node.seLinux) return false;
    const mount = (await this.#deps.mounts.below(hostPath)).findLast(({ target }) => target === hostPath);
    return mount === undefined || mount.options.includes("seclabel");
  }

  async #bind(
    { pod, container }: MountingContainer,
    { mount, index, volume, subPath }: SubPathMount,
    paths: VolumePaths,
  ): Promise<string> {
    const target = paths.subPath(volume.directoryName ?? mount.name, container.name, index);
    const names = `volumeMount ${JSON.stringify(mount.name)} of container ${JSON.stringify(container.name)}`;
    const remark = (why?: string): void => {
      this.#remarks.tell(podRef(pod), `${container.name} ${index}`, why);
    };
    try {
      await bindSubPath(this.#deps, volume.hostPath, subPath, target);
      remark();
      return target;
    } catch (error) {
      // The file system's message may reveal files of the node to the pod's author.
      const of = { ...podRef(pod), container: container.name };
      this.#deps.log.warn("cannot prepare a subPath", { ...of, error: errorMessage(error) });
      remark(`subPath ${JSON.stringify(subPath)} of ${names} cannot be mounted: ${errorMessage(error)}`);
      throw new ContainerConfigError(`failed to prepare subPath for ${names}`, { cause: error });
    }
  }
}

type MountSource = Pick<Mount, "hostPath" | "image" | "imageSubPath">;

/**
 * Where a mount's files come from. The runtime finds a subPath within an image itself, and has the pod's annotations as
 * for a pull.
 * @throws ContainerConfigError for an image volume without its image, for which a container would get nothing
 */
function sourceOf({ hostPath, image }: MountedVolume, { metadata }: Pod, subPath: string): MountSource {
  if (image !== undefined) {
    const { imageRef, reference } = image;
    const spec = { image: imageRef, userSpecifiedImage: reference, annotations: { ...metadata.annotations } };
    return { hostPath: "", image: spec, ...(subPath !== "" && { imageSubPath: subPath }) };
  }
  if (hostPath === "") throw new ContainerConfigError("an image volume has no image");
  return { hostPath };
}
