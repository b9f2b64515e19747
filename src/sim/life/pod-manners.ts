import type { Pod } from "../../api/pod.ts";
import type { SimRandom } from "../random.ts";

/** In half of the pods most containers exit with 0 on their stop signal. */
export function withManners(pod: Pod, random: SimRandom): Pod {
  if (!random.chance(0.5)) return pod;
  const containers = pod.spec.containers.map((container) => {
    return random.chance(0.8) ? { ...container, command: [...(container.command ?? []), "polite"] } : container;
  });
  return { ...pod, spec: { ...pod.spec, containers } };
}
