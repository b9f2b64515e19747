import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { PullPolicy } from "../../images/pull-decision.ts";
import type { MountedVolume, MountedVolumes, VolumeImage } from "./mounted-volumes.ts";

/** A volume that is an image. */
export interface ImageVolume {
  /** The volume's name in the pod. */
  readonly name: string;
  /** As in the spec. */
  readonly reference: string;
  readonly pullPolicy: PullPolicy;
}

/** The image volumes that a container mounts, each once, in the order of its mounts. Pure. */
export function imageVolumesOf({ spec }: Pod, { volumeMounts = [] }: Container): ImageVolume[] {
  const names = new Set(volumeMounts.map((mount) => mount.name));
  return [...names].flatMap((name) => {
    const image = spec.volumes?.find((volume) => volume.name === name)?.image;
    if (image === undefined) return [];
    const { reference = "", pullPolicy } = image;
    return [{ name, reference, pullPolicy: pullPolicyOf(pullPolicy) }];
  });
}

/** Sources set a default, and reject other values. */
function pullPolicyOf(text: string | undefined): PullPolicy {
  return text === "Always" || text === "Never" ? text : "IfNotPresent";
}

/** The mounted volumes with the images that were found for some of them. Pure. */
export function withImages(mounted: MountedVolumes, images: ReadonlyMap<string, VolumeImage>): MountedVolumes {
  if (images.size === 0) return mounted;
  return new Map(
    [...mounted].map(([name, volume]): [string, MountedVolume] => {
      const image = images.get(name);
      return [name, image === undefined ? volume : { ...volume, image }];
    }),
  );
}
