import type { Container, ResourceRequirements } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { PodCondition, PodStatus, ResourceStatus } from "../api/status.ts";
import { formatTime } from "../base/time.ts";
import { formatList, parseList, podLimits, podRequests, type Quantities } from "../resources/pod-totals.ts";
import { milliQuantity, type Quantity, quantityOf } from "../resources/quantity.ts";
import type { PodResources } from "../resources/resource-checkpoint.ts";
import type { PendingReason } from "../resources/resize-admission.ts";
import { withResources } from "../resources/resizable.ts";
import type { ContainerStatus as RuntimeContainerStatus } from "../runtime/status/pod-status.ts";
import type { StatusInputs } from "./inputs.ts";

/** The kernel rounds smaller values up: the requested value is shown instead. */
const leastMilliCpuLimit = 10n;
const leastMilliCpuRequest = 2n;

/** Limits and requests, omitted when empty. */
export function resourceStatus(
  requests: Readonly<Record<string, string>>,
  limits: Readonly<Record<string, string>>,
): ResourceStatus {
  return {
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(Object.keys(requests).length > 0 && { requests }),
  };
}

/**
 * `resources` of a container's status: the allocation and, while it runs, its actual CPU and memory, from the runtime
 * or else from the record.
 */
export function actualResources(
  container: Container,
  { state, resources: reported }: Pick<RuntimeContainerStatus, "state" | "resources">,
  actuated: PodResources | undefined,
): ResourceStatus {
  const limits = new Map(parseList(container.resources?.limits));
  const requests = new Map(parseList(container.resources?.requests));
  if (state === "running") {
    const given = actuated?.containers.get(container.name);
    const [givenLimits, givenRequests] = [parseList(given?.limits), parseList(given?.requests)];
    const cpuRequest = reported?.cpuRequest === undefined ? undefined : milliQuantity(reported.cpuRequest);
    const cpuLimit = reported?.cpuLimit === undefined ? undefined : milliQuantity(reported.cpuLimit);
    const memoryLimit = reported?.memoryLimit === undefined ? undefined : quantityOf(reported.memoryLimit, "BinarySI");
    if (container.resources?.limits !== undefined) {
      show(limits, "cpu", cpuLimit ?? givenLimits.get("cpu"), leastMilliCpuLimit);
      show(limits, "memory", memoryLimit ?? givenLimits.get("memory"), 0n);
    }
    if (container.resources?.requests !== undefined) {
      show(requests, "cpu", cpuRequest ?? givenRequests.get("cpu"), leastMilliCpuRequest);
      show(requests, "memory", givenRequests.get("memory"), 0n);
    }
  }
  return resourceStatus(formatList(requests), formatList(limits));
}

/** Shows the actual instead of the allocated value, unless the kernel treats both as equal. */
function show(list: Map<string, Quantity>, name: string, actual: Quantity | undefined, leastMillis: bigint): void {
  if (actual === undefined) return;
  const granted = list.get(name)?.milliValue() ?? 0n;
  if (actual.milliValue() > leastMillis || granted > leastMillis) list.set(name, actual);
}

/** `allocatedResources` and `resources` of a pod's status: its allocation and actual values. */
export function podResourceStatus(
  pod: Pod,
  actuated: PodResources | undefined,
): { readonly allocatedResources?: Record<string, string>; readonly resources: ResourceStatus } {
  const allocated = formatList(podRequests(pod));
  const given = actuated && withResources(pod, { ...actuated, pod: actuated.pod ?? pod.spec.resources });
  const [requests, limits]: Quantities[] = [podRequests(given ?? pod), podLimits(given ?? pod)];
  return {
    ...(Object.keys(allocated).length > 0 && { allocatedResources: allocated }),
    resources: resourceStatus(formatList(requests ?? new Map()), formatList(limits ?? new Map())),
  };
}

/** `allocatedResources` of a container's status, omitted when empty. */
export function allocatedResources(resources: ResourceRequirements | undefined): {
  readonly allocatedResources?: Record<string, string>;
} {
  const requests = formatList(parseList(resources?.requests));
  return Object.keys(requests).length > 0 ? { allocatedResources: requests } : {};
}

export const resizeConditions = ["PodResizePending", "PodResizeInProgress"] as const;

/** Why the resize to this generation of the pod is pending, according to a status. */
export function pendingResize({ metadata }: Pod, status: PodStatus | undefined): PendingReason | undefined {
  const condition = status?.conditions?.find(({ type }) => type === "PodResizePending");
  const { reason, message = "", observedGeneration } = condition ?? {};
  if (observedGeneration === undefined || observedGeneration !== metadata.generation) return undefined;
  return reason === "Deferred" || reason === "Infeasible" ? { reason, message } : undefined;
}

/** The conditions of a pending or running resize; a stopping pod has none. */
export function resizeConditionsOf(
  inputs: Pick<StatusInputs, "pod" | "previous" | "now" | "podIsTerminal" | "resize">,
): PodCondition[] {
  const { pod, previous, now, podIsTerminal, resize } = inputs;
  if (podIsTerminal || resize === undefined) return [];
  const { pending, inProgress } = resize;
  const last = (type: string): PodCondition | undefined => previous?.conditions?.find((other) => other.type === type);
  const condition = (
    type: (typeof resizeConditions)[number],
    generation: number | undefined,
    reason = "",
    message = "",
  ): PodCondition => {
    const before = last(type);
    const same = before !== undefined && (before.reason ?? "") === reason;
    return {
      type,
      ...(generation ? { observedGeneration: generation } : {}),
      status: "True",
      lastProbeTime: null,
      lastTransitionTime: same ? before.lastTransitionTime : formatTime(now),
      ...(reason && { reason }),
      ...(message && { message }),
    };
  };
  const { generation } = pod.metadata;
  const conditions: PodCondition[] = [];
  if (pending !== undefined) {
    conditions.push(condition("PodResizePending", generation, pending.reason, pending.message));
  }
  if (inProgress !== undefined) {
    // While in progress it is the allocated resize, whatever is requested meanwhile.
    const asked = inProgress.generation ?? last("PodResizeInProgress")?.observedGeneration ?? generation;
    const { error } = inProgress;
    conditions.push(condition("PodResizeInProgress", asked, error === undefined ? "" : "Error", error));
  }
  return conditions;
}
