import type { AccessJudgement, AskedImage, Observer } from "../journal/observer.ts";
import type { Family } from "./family.ts";
import type { Registry } from "./registry.ts";

/** Notes that are kept of how images came to the node, below `image_manager/` of the root directory. */
export interface ImageRecordCounts {
  /** Pulls that are in progress, or were when an earlier run ended. */
  readonly intents: number;
  /** Images with the credentials that they were pulled with. */
  readonly pulled: number;
}

/** Containers' image requests, and access decisions for images on the node. */
export class ImageMetrics implements Pick<Observer, "imageAsked" | "accessJudged"> {
  readonly #asked;
  readonly #judged;

  constructor(registry: Registry) {
    this.#asked = registry.counter(
      "kubelet_image_manager_ensure_image_requests_total",
      "Number of ensure-image requests processed by the kubelet.",
      ["pull_policy", "present_locally", "pull_required"],
    );
    this.#judged = registry.counter(
      "kubelet_imagemanager_image_mustpull_checks_total",
      "Counter for how many times kubelet checked whether credentials need to be re-verified to access an image",
      ["result"],
    );
  }

  imageAsked(policy: string, { present, pulls }: AskedImage): void {
    this.#asked.add([policy.toLowerCase(), `${present ?? "unknown"}`, `${pulls ?? "unknown"}`]);
  }

  accessJudged(judgement: AccessJudgement): void {
    this.#judged.add([judgement]);
  }
}

/** @param counts undefined: they can't be read */
export function imageRecordFamilies(counts: ImageRecordCounts | undefined): Family[] {
  const gauge = (name: string, help: string, value: number | undefined): Family => {
    const samples = value === undefined ? [] : [{ labels: [], value }];
    return { name, help, type: "gauge", stability: "ALPHA", labels: [], samples };
  };
  return [
    gauge("kubelet_imagemanager_ondisk_pullintents", "Number of ImagePullIntents stored on disk.", counts?.intents),
    gauge("kubelet_imagemanager_ondisk_pulledrecords", "Number of ImagePulledRecords stored on disk.", counts?.pulled),
  ];
}
