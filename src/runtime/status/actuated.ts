import type { Container, ResourceRequirements } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { parseList } from "../../resources/pod-totals.ts";
import type { ResourceRecord } from "../../resources/resource-record.ts";

/** Records what a container was given, or with `undefined` the pod as a whole. */
export function recordActuated(
  actuated: Pick<ResourceRecord, "setPart">,
  pod: Pod,
  container: Container | undefined,
): void {
  const { uid } = pod.metadata;
  if (container === undefined) actuated.setPart(uid, undefined, pod.spec.resources);
  else actuated.setPart(uid, container.name, effectiveRequirements(container, pod.spec.resources));
}

/** What a container is given: the pod's limits where it has none of its own, as upstream records it. Pure. */
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
