import type { CgroupState } from "../../ports/cgroups.ts";
import { quotaToMilliCpu, sharesToMilliCpu } from "../../resources/cpu.ts";
import type { PodResources } from "../../resources/resource-checkpoint.ts";
import type { ContainerResources, ContainerStatus, PodStatus } from "../status/pod-status.ts";
import { amountsOf, sameAmounts, reportedAmounts } from "./resize-actions.ts";

/** The kernel rounds memory to pages, and CPU to the granularity of a weight or quota. */
const memoryTolerance = 65_536n;
const cpuTolerance = 10n;

/**
 * Running containers whose reported resources differ from the record. Either may be outdated: the record after an
 * interrupted resize, the runtime's value after its restart (CRI-O does not keep resizes). The cgroup decides.
 */
export function disputed(recorded: PodResources | undefined, { containers }: PodStatus): ContainerStatus[] {
  return containers.filter((container) => {
    const given = recorded?.containers.get(container.name);
    if (container.state !== "running" || given === undefined) return false;
    const had = amountsOf({ resources: given }, recorded?.pod);
    const reported = reportedAmounts(container, had);
    return reported !== undefined && !sameAmounts(had, reported);
  });
}

/** The status with the cgroup values of those containers, by ID. */
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

/** The cgroup's values; where one of the two sources agrees up to the kernel's rounding, that source's. */
function held(
  { resources }: CgroupState,
  reported: ContainerResources | undefined,
  had: { readonly cpuRequest: bigint; readonly cpuLimit: bigint; readonly memoryLimit: bigint },
): ContainerResources {
  const { cpuShares, cpuQuotaMicroseconds, cpuPeriodMicroseconds, memoryLimitBytes } = resources;
  const cpuRequest = sharesToMilliCpu(BigInt(cpuShares));
  const quota = cpuQuotaMicroseconds > 0 ? BigInt(cpuQuotaMicroseconds) : 0n;
  const memory = memoryLimitBytes > 0 ? BigInt(memoryLimitBytes) : 0n;
  const cpuLimit = quotaToMilliCpu(quota, BigInt(cpuPeriodMicroseconds));
  // A weight is too coarse for more than choosing between the two.
  const requests = [had.cpuRequest, reported?.cpuRequest ?? 0n].toSorted(
    (a, b) => apart(a, cpuRequest) - apart(b, cpuRequest),
  );
  return {
    cpuRequest: positive(requests[0] ?? 0n),
    cpuLimit: positive(nearest(cpuLimit, [had.cpuLimit, reported?.cpuLimit], cpuTolerance)),
    memoryLimit: positive(nearest(memory, [had.memoryLimit, reported?.memoryLimit], memoryTolerance)),
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
