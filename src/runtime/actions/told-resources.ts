import type { CgroupState } from "../../ports/cgroups.ts";
import { quotaToMilliCpu, sharesToMilliCpu } from "../../resources/cpu.ts";
import type { PodResources } from "../../resources/resource-checkpoint.ts";
import type { ContainerResources, ContainerStatus, PodStatus } from "../status/pod-status.ts";
import { amountsOf, sameAmounts, toldAmounts } from "./resize-actions.ts";

/** The kernel rounds memory to pages and CPU to what a weight or a quota can say. */
const memoryTolerance = 65_536n;
const cpuTolerance = 10n;

/**
 * Running containers of which the runtime tells otherwise than was recorded when they were last given something. Either may
 * be out of date: the record after a resize whose end nobody noted, the runtime's word after its own restart (CRI-O keeps
 * no resizes). What the cgroup holds decides.
 */
export function disputed(recorded: PodResources | undefined, { containers }: PodStatus): ContainerStatus[] {
  return containers.filter((container) => {
    const given = recorded?.containers.get(container.name);
    if (container.state !== "running" || given === undefined) return false;
    const had = amountsOf({ resources: given }, recorded?.pod);
    const told = toldAmounts(container, had);
    return told !== undefined && !sameAmounts(had, told);
  });
}

/** The status with what their cgroups hold of those containers, by id. */
export function withCgroups(
  status: PodStatus,
  recorded: PodResources | undefined,
  cgroups: ReadonlyMap<string, CgroupState>,
): PodStatus {
  const containers = status.containers.map((container) => {
    const cgroup = cgroups.get(container.id);
    const given = recorded?.containers.get(container.name);
    if (cgroup === undefined || given === undefined) return container;
    const had = amountsOf({ resources: given }, recorded?.pod);
    return { ...container, resources: held(cgroup, container.resources, had) };
  });
  return { ...status, containers };
}

/** What a cgroup holds, in the words of who is right where the kernel has only rounded it. */
function held(
  { resources }: CgroupState,
  told: ContainerResources | undefined,
  had: { readonly cpuRequest: bigint; readonly cpuLimit: bigint; readonly memoryLimit: bigint },
): ContainerResources {
  const { cpuShares, cpuQuotaMicroseconds, cpuPeriodMicroseconds, memoryLimitBytes } = resources;
  const cpuRequest = sharesToMilliCpu(BigInt(cpuShares));
  const quota = cpuQuotaMicroseconds > 0 ? BigInt(cpuQuotaMicroseconds) : 0n;
  const memory = memoryLimitBytes > 0 ? BigInt(memoryLimitBytes) : 0n;
  const cpuLimit = quotaToMilliCpu(quota, BigInt(cpuPeriodMicroseconds));
  // A weight says a request too roughly for more than telling which of the two it is.
  const requests = [had.cpuRequest, told?.cpuRequest ?? 0n].toSorted(
    (a, b) => apart(a, cpuRequest) - apart(b, cpuRequest),
  );
  return {
    cpuRequest: positive(requests[0] ?? 0n),
    cpuLimit: positive(nearest(cpuLimit, [had.cpuLimit, told?.cpuLimit], cpuTolerance)),
    memoryLimit: positive(nearest(memory, [had.memoryLimit, told?.memoryLimit], memoryTolerance)),
  };
}

function nearest(amount: bigint, known: readonly (bigint | undefined)[], tolerance: bigint): bigint {
  const meant = known.find((each) => each !== undefined && each > 0n && apart(each, amount) <= Number(tolerance));
  return amount === 0n ? 0n : (meant ?? amount);
}

function apart(a: bigint, b: bigint): number {
  return Math.abs(Number(a - b));
}

function positive(amount: bigint): bigint | undefined {
  return amount > 0n ? amount : undefined;
}
