import type { Pod } from "../../api/pod.ts";
import { imagesOf, needsImage } from "./image-users.ts";
import { recoveredMs, type Rule, type RuleMaker } from "./rule.ts";

/** A pod that appeared or began to start while an image was being removed: its start checks again. */
const unheardMs = 10_000;

/**
 * Garbage collection removes no image that has a container or that a known pod needs, none before all pods are known,
 * and none while there is room. No container is created from an image that was removed during its start.
 */
export const collectedImages: RuleMaker = ({ clock, world, node, unwanted }, broken): Rule => {
  /** Simulated ms since when podwright has known each pod as desired. */
  const wantedMs = new Map<string, number>();

  function removed(image: string): void {
    if (!node.isUp) return;
    // If calls hang, an earlier observation of the runtime may still be in use.
    const isEarly = !node.mayCollect && node.callsAreTimely;
    if (isEarly) broken("nothing is collected before all pods are known", `image ${image} was removed`);
    const user = [...world.containers.values()].find((container) => imagesOf(container).includes(image));
    // Created during the call, whose effect was delayed.
    const isLate = !node.callsAreTimely || node.soundSinceMs + recoveredMs > clock.nowMs;
    if (user !== undefined && !isLate) broken("no image in use is collected", `${image} of container ${user.id}`);
    const uid = wanting(image)?.metadata.uid;
    if (uid !== undefined && !isLate) broken("no needed image is collected", `${image} of ${uid}`);
  }

  /** A pod that podwright has known for longer than a removal takes. */
  function wanting(image: string): Pod | undefined {
    return node.pods().flatMap(({ view }) => {
      const { pod, state } = view;
      if (pod === undefined || state.kind !== "syncing" || unwanted.has(pod.metadata.uid)) return [];
      const sinceMs = wantedMs.get(pod.metadata.uid) ?? clock.nowMs;
      if (sinceMs + unheardMs > clock.nowMs) return [];
      return needsImage(pod, image) ? [pod] : [];
    })[0];
  }

  world.images.onRemoved(removed);
  world.images.onMissing((image) => {
    if (node.soundSinceMs + recoveredMs > clock.nowMs || !node.callsAreTimely) return;
    broken("an image stays until its container is created", `${image} is not there`);
  });
  return {
    entry: ({ kind, what, pod, cause }) => {
      if (what === "PodAdded" || what === "ComputePodActions") {
        if (pod !== undefined && !wantedMs.has(pod.uid)) wantedMs.set(pod.uid, clock.nowMs);
      }
      if (kind !== "action" || what !== "RemoveImage" || cause?.code !== "ImageFsFull") return;
      const { availableBytes, capacityBytes } = world.images.fileSystem();
      const usedPercent = 100 - (availableBytes * 100) / capacityBytes;
      // The collection's measurement is slightly older.
      if (usedPercent > node.imagePolicy.lowThresholdPercent || world.images.freedMs + 1000 > clock.nowMs) return;
      broken("a collection ends at the low threshold", `the image file system is ${usedPercent}% full`);
    },
    changed: (_before, { metadata }) => void wantedMs.set(metadata.uid, clock.nowMs),
    reborn: (uid) => void wantedMs.set(uid, clock.nowMs),
  };
};
