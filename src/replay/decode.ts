import type { Pod } from "../api/pod.ts";
import { containerId, podUid, sandboxId } from "../base/ids.ts";
import type { Decision } from "../pods/decision-recorder.ts";
import type { PodActionsContext, ResizeFacts } from "../runtime/actions/pod-actions-context.ts";
import type { ContainerStatus, PodStatus, SandboxStatus } from "../runtime/status/pod-status.ts";
import type { RecordedContext, RecordedInputs, RecordedInstance, RecordedSandbox } from "./format.ts";

/** The inputs of `computePodActions` for a replay. Unrecorded ones have no effect, and are empty. */
export function restoredInputs({ pod, status, context }: RecordedInputs): Omit<Decision, "actions"> {
  const { namespace, name, uid, spec } = pod;
  const restored: Pod = { metadata: { namespace, name, uid: podUid(uid) }, spec };
  const observed: PodStatus = {
    uid: podUid(uid),
    name,
    namespace,
    sandboxes: status.sandboxes.map(sandbox),
    containers: status.containers.map(instance),
  };
  return { pod: restored, status: observed, context: restoredContext(context) };
}

function sandbox(recorded: RecordedSandbox): SandboxStatus {
  return { ...recorded, id: sandboxId(recorded.id), createdAt: BigInt(recorded.createdAt) };
}

function instance(recorded: RecordedInstance): ContainerStatus {
  const { resources } = recorded;
  return {
    ...recorded,
    id: containerId(recorded.id),
    sandboxId: recorded.sandboxId === undefined ? undefined : sandboxId(recorded.sandboxId),
    createdAt: BigInt(recorded.createdAt),
    startedAt: BigInt(recorded.startedAt),
    finishedAt: BigInt(recorded.finishedAt),
    resources: resources && {
      cpuRequest: amount(resources.cpuRequest),
      cpuLimit: amount(resources.cpuLimit),
      memoryLimit: amount(resources.memoryLimit),
    },
    message: "",
    imageId: "",
    logPath: "",
    terminationGracePeriodSeconds: undefined,
    terminationMessagePath: "",
    terminationMessageHostPath: "",
    terminationMessagePolicy: "",
    user: undefined,
    stopSignal: undefined,
  };
}

function amount(text: string | undefined): bigint | undefined {
  return text === undefined ? undefined : BigInt(text);
}

function restoredContext(recorded: RecordedContext): PodActionsContext {
  const containers = new Map(Object.entries(recorded.containers));
  const instances = new Map(Object.entries(recorded.instances));
  return {
    nowMs: recorded.nowMs,
    busy: new Set(recorded.busy),
    backOffEndsAt: ({ name }) => containers.get(name)?.backOffEndsAtMs,
    retryAt: ({ name }) => containers.get(name)?.retryAtMs,
    sandboxRetryAt: recorded.sandboxRetryAtMs,
    sandboxBackOffEndsAt: recorded.sandboxBackOffEndsAtMs,
    evidence: ({ id }) => instances.get(id)?.evidence,
    restartCause: ({ id }) => instances.get(id)?.restartCause,
    startsOver: ({ id }) => instances.get(id)?.startsOver ?? false,
    unhealthy: ({ name }) => containers.get(name)?.unhealthy,
    started: ({ name }) => containers.get(name)?.started ?? false,
    resize: recorded.resize && resizeFacts(recorded.resize),
  };
}

function resizeFacts({ actuated, underWay, retryAtMs, cause }: NonNullable<RecordedContext["resize"]>): ResizeFacts {
  const given = actuated && { containers: new Map(Object.entries(actuated.containers)), pod: actuated.pod };
  return { actuated: given, underWay, retryAtMs, cause };
}
