import { containersOf } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerId } from "../base/ids.ts";
import type { ContainerStatus, PodStatus } from "../runtime/status/pod-status.ts";

/**
 * Instances whose postStart hook is still running: for the API they are not running yet. They are not ready and not
 * probed, whatever the runtime shows.
 */
export function inPostStart(
  { spec }: Pod,
  { containers }: PodStatus,
  isStarting: (instance: ContainerStatus) => boolean,
): ReadonlySet<ContainerId> {
  const hooked = containersOf(spec).filter(({ lifecycle }) => lifecycle?.postStart);
  const names = new Set(hooked.map(({ name }) => name));
  const starting = containers.filter((instance) => names.has(instance.name) && isStarting(instance));
  // A container that has died by itself is reported immediately, though its hook may continue for long.
  return new Set(starting.filter(({ state }) => state === "running").map(({ id }) => id));
}

/** The pod's status without some instances, as if they did not exist yet. */
export function withoutInstances(status: PodStatus, ids: ReadonlySet<ContainerId>): PodStatus {
  if (ids.size === 0) return status;
  return { ...status, containers: status.containers.filter(({ id }) => !ids.has(id)) };
}
