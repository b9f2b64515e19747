import type { ContainerStatus, PodStatus, SandboxStatus } from "../status/pod-status.ts";

/** Which dead containers are kept (upstream's containerGC). */
export interface GarbagePolicy {
  /** Minimum age of garbage since its creation (minimum-container-ttl-duration, 0). */
  readonly minAgeMs: number;
  /** Dead instances kept of each container, for `logs --previous` (maximum-dead-containers-per-container, 1); negative: all. */
  readonly maxPerPodContainer: number;
  /** Dead containers kept on the whole node (maximum-dead-containers, −1); negative: unlimited. */
  readonly maxContainers: number;
}

export const defaultGarbagePolicy: GarbagePolicy = { minAgeMs: 0, maxPerPodContainer: 1, maxContainers: -1 };

/**
 * Surplus dead instances of a pod's containers; pure. The newest instance of each container always stays, unlike
 * upstream with a limit of 0: it is the record that the container has run, without which it would run again.
 * @param nowMs wall clock, like the runtime's creation times
 */
export function containerGarbage(status: PodStatus, policy: GarbagePolicy, nowMs: number): ContainerStatus[] {
  const { maxPerPodContainer } = policy;
  if (maxPerPodContainer < 0) return [];
  return instancesByName(status).flatMap(({ newest, dead }) => {
    const old = dead.filter((container) => isOldEnough(container, policy, nowMs));
    return old.slice(maxPerPodContainer).filter((container) => container !== newest);
  });
}

/**
 * Surplus dead containers of the whole node, after {@link containerGarbage}; pure. Each container first keeps an equal
 * share; then the oldest are removed. The newest instance of each is always kept.
 */
export function nodeGarbage(
  pods: readonly PodStatus[],
  policy: GarbagePolicy,
  nowMs: number,
): { readonly status: PodStatus; readonly container: ContainerStatus }[] {
  const { maxContainers } = policy;
  if (maxContainers < 0) return [];
  const units = pods.flatMap((status) =>
    instancesByName(status).map(({ newest, dead }) => {
      const old = dead.filter((container) => isOldEnough(container, policy, nowMs));
      return { status, newest, dead: old };
    }),
  );
  let excess = units.reduce((sum, { dead }) => sum + dead.length, 0) - maxContainers;
  if (excess <= 0) return [];
  const share = Math.max(1, Math.floor(maxContainers / units.filter(({ dead }) => dead.length > 0).length));
  const candidates = units
    .flatMap(({ status, newest, dead }) =>
      dead.map((container, index) => ({ status, container, beyondShare: index >= share, stays: container === newest })),
    )
    .filter(({ stays }) => !stays)
    .toSorted(
      (a, b) => Number(b.beyondShare) - Number(a.beyondShare) || Number(a.container.createdAt - b.container.createdAt),
    );
  return candidates.filter(({ beyondShare }) => excess-- > 0 || beyondShare);
}

/**
 * Obsolete sandboxes of a pod; pure. The newest is kept, dead or not, and so is one that is ready or has a container.
 */
export function sandboxGarbage({ sandboxes, containers }: PodStatus): SandboxStatus[] {
  const used = new Set(containers.map(({ sandboxId }) => sandboxId));
  return sandboxes.slice(1).filter(({ id, ready }) => !ready && !used.has(id));
}

interface Instances {
  /**
   * The record that the container has run. An instance that never started is no such record, and is about to be
   * replaced.
   */
  readonly newest: ContainerStatus;
  /** Newest first. */
  readonly dead: readonly ContainerStatus[];
}

function instancesByName({ containers }: PodStatus): Instances[] {
  const names = new Set(containers.map(({ name }) => name));
  return [...names].flatMap((name) => {
    const instances = containers.filter((container) => container.name === name);
    const dead = instances.filter(({ state }) => state === "exited" || state === "unknown");
    const newest = instances.find(({ state }) => state !== "created") ?? instances[0];
    return newest === undefined ? [] : [{ newest, dead }];
  });
}

function isOldEnough({ createdAt }: ContainerStatus, { minAgeMs }: GarbagePolicy, nowMs: number): boolean {
  return minAgeMs <= 0 || Number(createdAt / 1_000_000n) + minAgeMs <= nowMs;
}
