import { isSidecar } from "../../api/all-containers.ts";
import type { Pod } from "../../api/pod.ts";

/**
 * For each container that has to wait when its pod is stopped, the running containers that have to end before it: a
 * sidecar outlives the regular containers and the sidecars that were started after it (KEP-753). All others are stopped
 * at once, also the init container that runs at that moment. Pure.
 * @param running names of the containers that are still to be stopped
 */
export function terminationOrder(
  pod: Pod | undefined,
  running: ReadonlySet<string>,
): ReadonlyMap<string, readonly string[]> {
  const order = new Map<string, readonly string[]>();
  const before = (pod?.spec.containers ?? []).map(({ name }) => name).filter((name) => running.has(name));
  for (const { name } of (pod?.spec.initContainers ?? []).filter(isSidecar).toReversed()) {
    if (!running.has(name)) continue;
    if (before.length > 0) order.set(name, [...before]);
    before.push(name);
  }
  return order;
}
