import { ImageRoom } from "../../engine/image-room.ts";
import type { ImageCollectorConfig } from "../../images/image-collector.ts";
import type { Recorder } from "../../journal/entry.ts";
import type { Cri } from "../../ports/cri.ts";
import { imagesMount } from "../image-service.ts";
import { silentLog } from "../machine.ts";
import { SimRandom } from "../random.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import type { Surroundings } from "./build-kubelet.ts";
import { usualConfig } from "./node-config.ts";

/** As upstream's defaults. */
export const usualImagePolicy: ImageCollectorConfig = {
  highThresholdPercent: 85,
  lowThresholdPercent: 80,
  minAgeMs: 120_000,
  maxAgeMs: 0,
  onlyPulled: false,
};

/** The image collection of a seed's life: upstream's defaults in half of the lives. */
export function drawImagePolicy(seed: number): ImageCollectorConfig {
  const random = SimRandom.named(seed, "image policy");
  if (random.chance(0.5)) return usualImagePolicy;
  return {
    ...usualImagePolicy,
    lowThresholdPercent: random.pick([50, 75, 80]),
    minAgeMs: random.pick([0, 120_000, 400_000]),
    maxAgeMs: random.pick([0, 420_000, 600_000]),
  };
}

/** Which of the images that pods of a seed's life may use the runtime pins. */
export function drawPinnedImages(seed: number): readonly string[] {
  const random = SimRandom.named(seed, "pinned images");
  return random.chance(0.3) ? [random.pick(["busybox:latest", "busybox:2", "pulled:1", "large:1"]), "stray:1"] : [];
}

interface ImageRoomPlace extends Pick<Surroundings, "ports"> {
  readonly record: Recorder["record"];
  /** Called when the images have been listed for a collection. */
  readonly onListed: () => unknown;
}

/** Garbage collection of images in a simulated run. */
export function imageRoom(
  { images }: RuntimeWorld,
  cri: Cri,
  { ports: { clock, files }, record, onListed }: ImageRoomPlace,
  policy: ImageCollectorConfig,
): ImageRoom {
  const fileSystem = async (path: string) => (path === imagesMount ? images.fileSystem() : undefined);
  const listImages: Cri["images"]["listImages"] = async (request, options) => {
    const response = await cri.images.listImages(request, options);
    onListed();
    return response;
  };
  const observed = { ...cri, images: { ...cri.images, listImages } };
  const parts = { clock, files, disk: { fileSystem }, cri: observed, journal: { record }, log: silentLog };
  return new ImageRoom(parts, policy, usualConfig.node.rootDirectory);
}
