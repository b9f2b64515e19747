import type { Container, Image } from "../ports/gen/runtime/v1/api_pb.js";
import type { ImageHold, KnownImage } from "./image-garbage.ts";
import { isNamed } from "./image-names.ts";
import type { MountedImage } from "./mounted-images.ts";

export interface WantedImages {
  /** `default/shop` */
  readonly pod: string;
  readonly names: readonly string[];
}

/** Container label keys that identify the pod and container. */
export interface OwnerLabels {
  readonly namespace: string;
  readonly pod: string;
}

/** Images and containers of the node, all listed after the survey had begun. */
export interface FoundImages {
  readonly images: readonly Image[];
  readonly containers: readonly Container[];
  readonly mounted: readonly MountedImage[];
  readonly wanted: readonly WantedImages[];
  readonly isLeased: (id: string) => boolean;
  /** The image of sandboxes; empty: unknown. */
  readonly sandboxImage: string;
  /** IDs of images that podwright may not remove. */
  readonly foreign: ReadonlySet<string>;
}

/** When an image was first seen and last in use: monotonic ms. */
export type UseOf = (id: string) => Pick<KnownImage, "detectedMs" | "lastUsedMs">;

/** IDs of images that containers have, dead ones included, as their own or as a volume, each with one of them; pure. */
export function imagesInUse({
  images,
  containers,
  mounted,
}: Pick<FoundImages, "images" | "containers" | "mounted">): ReadonlyMap<string, Container> {
  const idOf = new Map(images.flatMap((image) => namesOf(image).map((name) => [name, image.id] as const)));
  for (const { id } of images) idOf.set(id, id);
  const used = new Map<string, Container>();
  const use = (name: string, container: Container): void => {
    const id = idOf.get(name);
    if (id !== undefined && !used.has(id)) used.set(id, container);
  };
  for (const container of containers) {
    for (const name of [container.imageId, container.imageRef, container.image?.image ?? ""]) use(name, container);
  }
  for (const { container, image } of mounted) use(image, container);
  return used;
}

/** The runtime's images with the reason why each stays, if any; pure. */
export function knownImages(found: FoundImages, useOf: UseOf, labels: OwnerLabels): KnownImage[] {
  const used = imagesInUse(found);
  return found.images.map((image) => {
    const { id, size, spec } = image;
    const known = { id, names: namesOf(image) };
    return {
      ...known,
      runtimeHandler: spec?.runtimeHandler ?? "",
      sizeBytes: Number(size),
      ...useOf(id),
      hold: holdOf(image, known.names, { ...found, container: used.get(id) }, labels),
    };
  });
}

function holdOf(
  { id, pinned }: Image,
  names: readonly string[],
  { container, wanted, isLeased, foreign, sandboxImage }: FoundImages & { readonly container: Container | undefined },
  labels: OwnerLabels,
): ImageHold | undefined {
  if (container !== undefined) {
    const owner = `${container.labels[labels.namespace] ?? ""}/${container.labels[labels.pod] ?? ""}`;
    const of = owner === "/" ? "" : ` of pod ${owner}`;
    return { reason: "inUse", text: `in use by container ${container.metadata?.name ?? container.id}${of}` };
  }
  const pod = wanted.find((each) => each.names.some((name) => isNamed(name, { id, names })));
  if (pod !== undefined) return { reason: "wanted", text: `needed by pod ${pod.pod}` };
  if (isLeased(id)) return { reason: "leased", text: "a starting container is about to use it" };
  if (pinned) return { reason: "pinned", text: "pinned by the runtime" };
  if (isNamed(sandboxImage, { id, names })) return { reason: "pinned", text: "the image of the runtime's sandboxes" };
  return foreign.has(id) ? { reason: "notOurs", text: "not pulled by podwright" } : undefined;
}

/** Tags, then digests. */
export function namesOf({ repoTags, repoDigests }: Image): readonly string[] {
  return [...repoTags, ...repoDigests];
}
