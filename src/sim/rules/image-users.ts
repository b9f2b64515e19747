import { allContainers } from "../../api/all-containers.ts";
import type { Pod } from "../../api/pod.ts";
import type { SimContainer } from "../world-model.ts";
import type { Scene } from "./rule.ts";

/** The names of the images that a container has, as its own and as volumes. */
export function imagesOf({ config: { image, mounts } }: SimContainer): readonly string[] {
  const ids = [image, ...mounts.map((mount) => mount.image)].flatMap((each) =>
    each === undefined ? [] : [each.image],
  );
  return ids.map((id) => id.replace(/^sha256:/u, ""));
}

/** With the tag that the runtime knows it by. */
export function tagged(name: string): string {
  return name.includes(":") ? name : `${name}:latest`;
}

/** Whether a pod needs the image, for a container or for a volume. */
export function needsImage({ spec }: Pod, image: string): boolean {
  const own = allContainers(spec).map((container) => container.image ?? "");
  const volumes = (spec.volumes ?? []).flatMap((volume) => volume.image?.reference ?? []);
  return [...own, ...volumes].some((name) => tagged(name) === image);
}

/** A pod that podwright keeps running and that names the image. */
export function wants({ node }: Pick<Scene, "node">, image: string): Pod | undefined {
  return node.pods().flatMap(({ view: { pod, state } }) => {
    return pod !== undefined && state.kind === "syncing" && needsImage(pod, image) ? [pod] : [];
  })[0];
}
