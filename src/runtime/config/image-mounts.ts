import type { Cri } from "../../ports/cri.ts";
import type { ContainerConfig } from "./container-config.ts";

type Mounts = NonNullable<ContainerConfig["mounts"]>;

/** The mounts of images in a container's configuration. Pure. */
export function imageMountsOf({ mounts = [] }: Pick<ContainerConfig, "mounts">): Readonly<Mounts> {
  return mounts.filter(({ image }) => image !== undefined);
}

/**
 * The first subPath in an image that the runtime has not applied to a created container, which would see the whole
 * image in its place; undefined: none. A runtime that mounts images and does not know the field (containerd 2.1) does
 * not report it either. One that reports no images is believed.
 * @throws CriError
 */
export async function ignoredImageSubPath(cri: Cri, config: ContainerConfig, id: string): Promise<string | undefined> {
  const wanted = imageMountsOf(config).filter(({ imageSubPath = "" }) => imageSubPath !== "");
  if (wanted.length === 0) return undefined;
  const { status } = await cri.runtime.containerStatus({ containerId: id });
  const ignored = wanted.find(({ containerPath, imageSubPath }) => {
    const found = status?.mounts.findLast((mount) => mount.containerPath === containerPath);
    if (found?.image === undefined || found.imageSubPath === imageSubPath) return false;
    return !found.hostPath.endsWith(`/${imageSubPath}`);
  });
  return ignored?.imageSubPath;
}
