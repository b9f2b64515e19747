import { isSidecar } from "../../api/all-containers.ts";
import type { Pod } from "../../api/pod.ts";
import { invariant } from "../../base/invariant.ts";

/**
 * For each container of a stopping pod, the running containers that must exit first: a sidecar outlives the regular
 * containers and the sidecars after it (KEP-753). All others are stopped immediately, including a running init
 * container. Pure.
 * @param running names of the containers still to be stopped
 */
export function terminationOrder(
  pod: Pod | undefined,
  running: ReadonlySet<string>,
): ReadonlyMap<string, readonly string[]> {
  const order = new Map<string, readonly string[]>();
  const before = (pod?.spec.containers ?? []).map(({ name }) => name).filter((name) => running.has(name));
  for (const { name } of (pod?.spec.initContainers ?? []).filter(isSidecar).toReversed()) {
    if (!running.has(name)) continue;
    // Each would wait for the other until the grace is over.
    invariant("no container waits for itself to stop", !before.includes(name), () => name);
    if (before.length > 0) order.set(name, [...before]);
    before.push(name);
  }
  return order;
}
