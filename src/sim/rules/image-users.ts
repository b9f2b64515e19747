import { allContainers } from "../../api/all-containers.ts";
import type { Pod } from "../../api/pod.ts";
import type { SimContainer } from "../world-model.ts";
import type { Scene } from "./rule.ts";

/** The name of a container's image. */
export function imageOf({ config }: SimContainer): string {
  return (config.image?.image ?? "").replace(/^sha256:/u, "");
}

/** A pod that podwright keeps running and that names the image. */
export function wants({ node }: Pick<Scene, "node">, image: string): Pod | undefined {
  return node.pods().flatMap(({ view: { pod, state } }) => {
    if (pod === undefined || state.kind !== "syncing") return [];
    const names = allContainers(pod.spec).map(({ image: name = "" }) => (name.includes(":") ? name : `${name}:latest`));
    return names.includes(image) ? [pod] : [];
  })[0];
}
