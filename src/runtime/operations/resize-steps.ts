import type { CgroupResources } from "../../ports/cgroups.ts";
import { compareLimits } from "../../resources/pod-cgroups.ts";
import type { ResizableResource } from "../../resources/resizable.ts";
import { type Amounts, changes, type ContainerResize } from "../actions/resize-actions.ts";

export type PodLimits = Pick<
  CgroupResources,
  "cpuShares" | "cpuQuotaMicroseconds" | "cpuPeriodMicroseconds" | "memoryLimitBytes"
>;

/** `CPU quota 20000 µs, CPU period 100000 µs` */
export function limitsText(limits: PodLimits): string {
  const { cpuShares, cpuQuotaMicroseconds: quota, cpuPeriodMicroseconds: period, memoryLimitBytes: memory } = limits;
  return [
    ...(cpuShares === undefined ? [] : [`CPU shares ${cpuShares}`]),
    ...(quota === undefined ? [] : [quota < 0 ? "no CPU quota" : `CPU quota ${quota} µs`]),
    ...(period === undefined ? [] : [`CPU period ${period} µs`]),
    ...(memory === undefined ? [] : [memory < 0 ? "no memory limit" : `memory limit ${memory} bytes`]),
  ].join(", ");
}

/**
 * The ordered steps for one resource: values of the pod's cgroup and containers. If the pod is to have no limit, its
 * cgroup keeps the present one.
 */
export function stepsFor(
  name: ResizableResource,
  present: PodLimits,
  wanted: PodLimits,
  updates: readonly ContainerResize[],
): (PodLimits | ContainerResize)[] {
  const { limit, order } = name === "cpu" ? cpuLimit(present, wanted) : memoryLimit(present, wanted);
  const shares = name === "cpu" && wanted.cpuShares !== undefined ? { cpuShares: wanted.cpuShares } : undefined;
  const sharesOrder = shares === undefined ? 0 : shares.cpuShares - (present.cpuShares ?? 0);
  const grows = ({ from, to }: ContainerResize): boolean => growth(name, from, to) > 0;
  const concerned = updates.filter(({ from, to }) => changes(name, from, to));
  const steps: (PodLimits | ContainerResize | undefined)[] = [
    order > 0 ? limit : undefined,
    sharesOrder > 0 ? shares : undefined,
    // Other containers may need what one releases.
    ...concerned.filter((update) => !grows(update)),
    ...concerned.filter(grows),
    sharesOrder < 0 ? shares : undefined,
    order < 0 ? limit : undefined,
  ];
  return steps.filter((step) => step !== undefined);
}

interface LimitChange {
  readonly limit: PodLimits | undefined;
  /** Positive: an increase. */
  readonly order: number;
}

function cpuLimit(present: PodLimits, wanted: PodLimits): LimitChange {
  const { cpuQuotaMicroseconds, cpuPeriodMicroseconds } = wanted;
  if (cpuQuotaMicroseconds === undefined || cpuPeriodMicroseconds === undefined) return { limit: undefined, order: 0 };
  const order = compareLimits(cpuQuotaMicroseconds, present.cpuQuotaMicroseconds ?? -1);
  return { limit: { cpuQuotaMicroseconds, cpuPeriodMicroseconds }, order };
}

function memoryLimit(present: PodLimits, { memoryLimitBytes }: PodLimits): LimitChange {
  if (memoryLimitBytes === undefined) return { limit: undefined, order: 0 };
  return { limit: { memoryLimitBytes }, order: compareLimits(memoryLimitBytes, present.memoryLimitBytes ?? -1) };
}

function growth(name: ResizableResource, from: Amounts, to: Amounts): bigint {
  const [request, limit] =
    name === "cpu"
      ? [to.cpuRequest - from.cpuRequest, unlimited(to.cpuLimit) - unlimited(from.cpuLimit)]
      : [to.memoryRequest - from.memoryRequest, unlimited(to.memoryLimit) - unlimited(from.memoryLimit)];
  return limit === 0n ? request : limit;
}

/** A comparable limit: none (0) is greater than any. */
export function unlimited(limit: bigint): bigint {
  return limit === 0n ? 2n ** 63n : limit;
}
