import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import type { CgroupResources } from "../../ports/cgroups.ts";
import { isCriError } from "../../ports/cri.ts";
import { containerResources, sandboxOverhead, sandboxResources } from "../../resources/container-resources.ts";
import { compareLimits } from "../../resources/pod-cgroups.ts";
import { milliQuantity, quantityOf } from "../../resources/quantity.ts";
import type { ResizableResource } from "../../resources/resizable.ts";
import { recordActuated } from "../status/actuated.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import { podRef } from "../pod-ref.ts";
import type { SandboxStatus } from "../status/pod-status.ts";
import {
  type Amounts,
  changes,
  type ContainerResize,
  describeResize,
  type PodResize,
} from "../actions/resize-actions.ts";

/** A resize that can't be carried out as things are. */
export class ResizeError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ResizeError";
  }
}

const inOrder: readonly ResizableResource[] = ["memory", "cpu"];

type PodLimits = Pick<
  CgroupResources,
  "cpuShares" | "cpuQuotaMicroseconds" | "cpuPeriodMicroseconds" | "memoryLimitBytes"
>;

/**
 * Brings the cgroups of a pod and its running containers to the resources that the pod was granted (upstream:
 * doPodResizeAction). Memory first, then CPU, each in an order in which no container ever has more than its pod: what
 * grows grows from the pod's limit down, what shrinks from the containers up. All of it may be done again: what was done
 * is recorded at the end.
 * @throws ResizeError when memory is in use that would be taken away; CriError and FileError as they come
 */
export async function resizePod(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: SandboxStatus,
  resize: PodResize,
  signal: AbortSignal,
): Promise<void> {
  const { podCgroups } = deps;
  const wanted = podCgroups.resourcesOf(pod);
  const present = await podCgroups.read(pod);
  await refuseToTakeUsedMemory(deps, resize, wanted, present, signal);
  const act = actionOf(pod, resize);
  for (const name of inOrder) {
    for (const step of stepsFor(name, present.resources, wanted, resize.updates)) {
      signal.throwIfAborted();
      if ("container" in step) await updateContainer(deps, pod, step, name, act, signal);
      else await updatePod(deps, pod, sandbox, step, act, signal);
    }
  }
  await podCgroups.ensure(pod);
  for (const { container } of resize.updates) recordActuated(deps, pod, container);
  recordActuated(deps, pod, undefined);
  await deps.actuated.saved();
}

/**
 * What to do for one resource, in order: values of the pod's cgroup and containers. Where the pod has no limit, nothing
 * is set that it had before.
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
    // What one gives up another may need.
    ...concerned.filter((update) => !grows(update)),
    ...concerned.filter(grows),
    sharesOrder < 0 ? shares : undefined,
    order < 0 ? limit : undefined,
  ];
  return steps.filter((step) => step !== undefined);
}

interface LimitChange {
  readonly limit: PodLimits | undefined;
  /** Positive: more than before. */
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

/** No limit is more than any. */
function unlimited(limit: bigint): bigint {
  return limit === 0n ? 2n ** 63n : limit;
}

type Act = (message: string, container?: string) => Omit<ActionInput, "what">;

function actionOf(pod: Pod, { cause }: PodResize): Act {
  return (message, container) => ({ message, pod: podRef(pod), cause, ...(container !== undefined && { container }) });
}

async function updateContainer(
  { cri, journal, clock, node }: RuntimeDependencies,
  pod: Pod,
  update: ContainerResize,
  name: ResizableResource,
  act: Act,
  signal: AbortSignal,
): Promise<void> {
  const { container, running } = update;
  const linux = containerResources(pod, withAmounts(container, amountsAfter(name, update)), node.resources);
  const message = `resize container ${container.name}: ${describeResize(update, name)}`;
  await perform(journal, clock, { ...act(message, container.name), what: "UpdateContainerResources" }, async () => {
    await cri.runtime.updateContainerResources({ containerId: running.id, linux }, { signal });
  });
}

/** Memory is changed first, so CPU is what it was while memory changes, and memory what it is to be afterwards. */
function amountsAfter(name: ResizableResource, { from, to }: ContainerResize): Amounts {
  return name === "memory" ? { ...from, memoryRequest: to.memoryRequest, memoryLimit: to.memoryLimit } : to;
}

type List = Readonly<Record<string, string | number>>;

/**
 * The container with these amounts; resources that can't be resized stay as they are. What it does not ask for it does
 * not ask for here either: a container without a request weighs as much as its limit says.
 */
function withAmounts(container: Container, amounts: Amounts): Container {
  const { limits, requests } = container.resources ?? {};
  const list = (own: List = {}, cpu: bigint, memory: bigint): List => ({
    ...own,
    ...((cpu > 0n || own["cpu"] !== undefined) && { cpu: milliQuantity(cpu).toString() }),
    ...((memory > 0n || own["memory"] !== undefined) && { memory: quantityOf(memory, "BinarySI").toString() }),
  });
  return {
    ...container,
    resources: {
      limits: list(limits, amounts.cpuLimit, amounts.memoryLimit),
      requests: list(requests, amounts.cpuRequest, amounts.memoryRequest),
    },
  };
}

async function updatePod(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: SandboxStatus,
  limits: PodLimits,
  act: Act,
  signal: AbortSignal,
): Promise<void> {
  const values = Object.entries(limits).map(([name, value]) => `${name} ${value < 0 ? "unlimited" : value}`);
  const action: ActionInput = {
    ...act(`resize the pod's cgroup: ${values.join(", ")}`),
    what: "UpdatePodCgroup",
    data: limits,
  };
  await perform(deps.journal, deps.clock, action, async () => {
    await tellRuntime(deps, pod, sandbox, signal);
    await deps.podCgroups.apply(pod, limits);
  });
}

/** A runtime that wants to know (virtual machines, plug-ins) may refuse; one that does not know the call has no say. */
async function tellRuntime(
  { cri, node }: RuntimeDependencies,
  pod: Pod,
  sandbox: SandboxStatus,
  signal: AbortSignal,
): Promise<void> {
  const resources = sandboxResources(pod, node.resources);
  const overhead = sandboxOverhead(pod, node.resources);
  try {
    await cri.runtime.updatePodSandboxResources({ podSandboxId: sandbox.id, resources, overhead }, { signal });
  } catch (error) {
    // containerd 2.2 says it with another code.
    const unknown = isCriError(error, "Unknown") && error.message.includes("not implemented");
    if (!unknown && !isCriError(error, "Unimplemented")) throw error;
  }
}

/** Taking memory away that is in use would get the container killed, or leave the resize half done. */
async function refuseToTakeUsedMemory(
  { cri }: RuntimeDependencies,
  { updates }: PodResize,
  wanted: CgroupResources,
  present: { readonly resources: CgroupResources; readonly memoryUsageBytes: number },
  signal: AbortSignal,
): Promise<void> {
  const problems: string[] = [];
  const limit = wanted.memoryLimitBytes;
  const shrinks = limit !== undefined && compareLimits(limit, present.resources.memoryLimitBytes ?? -1) < 0;
  if (shrinks && present.memoryUsageBytes >= limit) {
    problems.push(`attempting to set pod memory limit (${limit}) below current usage (${present.memoryUsageBytes})`);
  }
  for (const { container, running, from, to } of updates) {
    if (to.memoryLimit === 0n || unlimited(to.memoryLimit) >= unlimited(from.memoryLimit)) continue;
    const { stats } = await cri.runtime.containerStats({ containerId: running.id }, { signal });
    const usage = stats?.memory?.usageBytes?.value ?? stats?.memory?.workingSetBytes?.value;
    if (usage === undefined) problems.push(`missing container "${container.name}" memory usage`);
    else if (usage >= to.memoryLimit) {
      const limits = `memory limit (${to.memoryLimit}) below current usage (${usage})`;
      problems.push(`attempting to set container "${container.name}" ${limits}`);
    }
  }
  if (problems.length > 0) throw new ResizeError(`cannot decrease memory limits: ${problems.join("; ")}`);
}
