import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { nameOf } from "../world-model.ts";
import { dataText } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

/**
 * A container is created only after the image of each image volume that it mounts was pulled or found, as the volume's
 * pull policy says, and never without the image.
 */
export const imageVolumes: RuleMaker = ({ pods }, broken): Rule => {
  /** `uid/container/volume` whose image was pulled or found since the container's last creation. */
  const pulled = new Set<string>();
  const found = new Set<string>();

  function creating({ pod, container }: SimEntry): void {
    const spec = pods.get(pod?.uid ?? "");
    const own = specContainers(pods, pod?.uid).find(({ name }) => name === container);
    if (spec === undefined || own === undefined) return;
    const mounted = new Set(own.volumeMounts?.map(({ name }) => name));
    for (const { name, image } of spec.spec.volumes ?? []) {
      if (image === undefined || !mounted.has(name)) continue;
      const { pullPolicy } = image;
      const key = `${pod?.uid}/${container}/${name}`;
      const [isPulled, isFound] = [pulled.delete(key), found.delete(key)];
      if (isPulled || (isFound && pullPolicy !== "Always")) continue;
      broken("images of volumes come first", `${key} has no image under ${pullPolicy}`);
    }
  }

  return {
    entry: (entry) => {
      const { what, kind, pod, container, result } = entry;
      if (what === lifeStarted) for (const known of [pulled, found]) known.clear();
      const key = `${pod?.uid}/${container}/${dataText(entry, "volume")}`;
      if (what === "ImagePresent") found.add(key);
      if (what === "PullImage" && result === "done") pulled.add(key);
      if (what === "CreateContainer" && kind === "action") creating(entry);
    },
    change: ({ type, podUid: uid, container }) => {
      if (type !== "created" || container === undefined) return;
      for (const { containerPath, hostPath, image } of container.config.mounts) {
        if (hostPath !== "" || image !== undefined) continue;
        broken("images of volumes come first", `${uid}/${nameOf(container)} has nothing at ${containerPath}`);
      }
    },
  };
};
