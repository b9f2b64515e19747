import type { Container, ResourceRequirements } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { parseList } from "../../resources/pod-totals.ts";
import type { ResourceRecord } from "../../resources/resource-record.ts";

/** Records the actuated resources of a container, or with `undefined` those of the pod. */
export function recordActuated(
  actuated: Pick<ResourceRecord, "setPart">,
  pod: Pod,
  container: Container | undefined,
): void {
  const { uid } = pod.metadata;
  if (container === undefined) actuated.setPart(uid, undefined, pod.spec.resources);
  else actuated.setPart(uid, container.name, effectiveRequirements(container, pod.spec.resources));
}

/** The resources of a container: the pod's limits where it has none, as upstream records it. Pure. */
export function effectiveRequirements(
  { resources = {} }: Pick<Container, "resources">,
  podLevel: ResourceRequirements | undefined,
): ResourceRequirements {
  const limits = { ...resources.limits };
  const own = parseList(resources.limits);
  for (const name of ["cpu", "memory"]) {
    const limit = podLevel?.limits?.[name];
    if (limit !== undefined && own.get(name)?.isZero !== false) limits[name] = limit;
  }
  return { ...resources, ...(Object.keys(limits).length > 0 && { limits }) };
}
