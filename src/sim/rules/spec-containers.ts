import { containersOf } from "../../api/all-containers.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";

/** Init and regular containers of a pod's spec; empty for an unknown pod. */
export function specContainers(pods: ReadonlyMap<string, Pod>, uid: string | undefined): readonly Container[] {
  const spec = pods.get(uid ?? "")?.spec;
  return spec === undefined ? [] : containersOf(spec);
}
