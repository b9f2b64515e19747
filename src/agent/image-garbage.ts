import type { ImageCollectorConfig } from "../images/image-collector.ts";
import type { ImageGarbagePolicy } from "../images/image-garbage.ts";

/**
 * The images that `podwright run` collects: those that it pulled itself, and only in its private runtime, because those
 * of another one belong to other programs, too. Undefined: none.
 */
export function engineImageGarbage(policy: ImageGarbagePolicy, isPrivate: boolean): ImageCollectorConfig | undefined {
  return isPrivate ? { ...policy, onlyPulled: true } : undefined;
}

/** Those of a kubelet: all, as upstream. */
export function kubeletImageGarbage(policy: ImageGarbagePolicy): ImageCollectorConfig {
  return { ...policy, onlyPulled: false };
}
