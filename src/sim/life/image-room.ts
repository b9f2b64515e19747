import { ImageRoom } from "../../engine/image-room.ts";
import type { Recorder } from "../../journal/entry.ts";
import type { Cri } from "../../ports/cri.ts";
import { imagesMount } from "../image-service.ts";
import { silentLog } from "../machine.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import type { Surroundings } from "./build-kubelet.ts";
import { usualConfig } from "./node-config.ts";

/** As upstream's defaults. */
const policy = { highThresholdPercent: 85, lowThresholdPercent: 80, minAgeMs: 120_000, maxAgeMs: 0, onlyPulled: false };

/** Garbage collection of images in a simulated run. */
export function imageRoom(
  { images }: RuntimeWorld,
  cri: Cri,
  { clock, files }: Surroundings["ports"],
  record: Recorder["record"],
): ImageRoom {
  const fileSystem = async (path: string) => (path === imagesMount ? images.fileSystem() : undefined);
  const parts = { clock, files, disk: { fileSystem }, cri, journal: { record }, log: silentLog };
  return new ImageRoom(parts, policy, usualConfig.node.rootDirectory);
}
