import type { Pod } from "../../api/pod.ts";
import type { SimRandom } from "../random.ts";
import { simplePod } from "./simple-pod.ts";
import type { Act, Stage } from "./stage.ts";
import { askCollection } from "./user-requests.ts";

const strays = ["stray:1", "stray:2", "stray:3"] as const;

/** Actions on images that no pod has pulled. */
export const imageActs = {
  /**
   * A user has unused images collected. One of them is needed by a pod that is not that far yet, and other pods begin to use
   * the others during the collection.
   */
  collectWhileStarting: (stage, random) => {
    const { node, world, clock, want, faults } = stage;
    for (const image of strays) world.images.add(image);
    node.ask(askCollection);
    const waiting = podWith(stage, random, "stray:2", 1);
    const [init] = simplePod(waiting, {}, { exitAfterMs: 2 * waitMs }).spec.containers;
    want({
      ...waiting,
      spec: { ...waiting.spec, initContainers: init === undefined ? [] : [{ ...init, name: "i0" }] },
    });
    const starting = [podWith(stage, random, "stray:1", 2), podWith(stage, random, "stray:3", 3)];
    const begins = starting.map((pod) => ({ pod, afterMs: random.integer(0, 3000) }));
    clock.schedule("images to be old enough", node.imagePolicy.minAgeMs + waitMs, () => {
      if (faults.hasEnded) return;
      for (const image of strays) world.images.add(image);
      const listed = node.imagesListed.on(() => {
        listed[Symbol.dispose]();
        if (faults.hasEnded) return;
        for (const { pod, afterMs } of begins) {
          clock.schedule("a pod to use a collected image", afterMs, () => want(pod));
        }
      });
      node.ask(askCollection);
    });
  },
  /** A pod uses one of several unused images for a while. */
  useImage: (stage, random) => {
    const { world, clock, want, unwant, faults } = stage;
    for (const image of strays) world.images.add(image);
    const pod = podWith(stage, random, "stray:1", 1);
    want(pod);
    clock.schedule("a pod with an image to go", useMs, () => {
      if (!faults.hasEnded) unwant(pod.metadata.uid);
    });
  },
} satisfies Record<string, Act>;

/** In this time a pod starts. */
const waitMs = 30_000;
/** Longer than the interval of collections, which observe the use of images. */
const useMs = 400_000;

/** A pod that only needs the image. */
function podWith({ newPod, clock }: Stage, random: SimRandom, image: string, number: number): Pod {
  const place = newPod(random, `image-${Math.trunc(clock.nowMs)}-${number}`, number);
  const pod = simplePod(place, {});
  const containers = pod.spec.containers.map((container) => ({ ...container, image }));
  return { ...pod, spec: { ...pod.spec, containers } };
}
