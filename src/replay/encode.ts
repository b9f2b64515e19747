import { allContainers } from "../api/all-containers.ts";
import type { Decision } from "../pods/decision-recorder.ts";
import type { ContainerToKill, ContainerToStart } from "../runtime/actions/container-decision.ts";
import type { ResizeFacts } from "../runtime/actions/pod-actions-context.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import { type ContainerStatus, findContainer, type SandboxStatus } from "../runtime/status/pod-status.ts";
import { describeResize } from "../runtime/actions/resize-actions.ts";
import {
  type Decided,
  keptOfContainer,
  keptOfSpec,
  type RecordedContext,
  type RecordedInputs,
  type RecordedInstance,
  type RecordedSandbox,
} from "./format.ts";

/** All that a decision depended on, as plain data without secrets. Asks the context, which must still hold. */
export function recordedInputs({ pod, status, context }: Omit<Decision, "actions">): RecordedInputs {
  const { namespace, name, uid } = pod.metadata;
  const { containers, initContainers, ephemeralContainers } = pod.spec;
  const spec = {
    ...keptOfSpec(pod.spec),
    ...(initContainers && { initContainers: initContainers.map(keptOfContainer) }),
    containers: containers.map(keptOfContainer),
    ...(ephemeralContainers && {
      ephemeralContainers: ephemeralContainers.map((container) => {
        const { targetContainerName } = container;
        return { ...keptOfContainer(container), ...(targetContainerName !== undefined && { targetContainerName }) };
      }),
    }),
  };
  return {
    pod: { namespace, name, uid, spec },
    status: { sandboxes: status.sandboxes.map(sandbox), containers: status.containers.map(instance) },
    context: recordedContext({ pod, status, context }),
  };
}

function sandbox({ id, attempt, ready, createdAt, hostNetwork, ips }: SandboxStatus): RecordedSandbox {
  return { id, attempt, ready, createdAt: String(createdAt), hostNetwork, ips: [...ips] };
}

function instance(container: ContainerStatus): RecordedInstance {
  const { id, name, sandboxId, state, exitCode, reason, image, hash, restartCount, resources } = container;
  return {
    id,
    name,
    sandboxId,
    state,
    createdAt: String(container.createdAt),
    startedAt: String(container.startedAt),
    finishedAt: String(container.finishedAt),
    exitCode,
    reason,
    image,
    hash,
    restartCount,
    resources: resources && {
      cpuRequest: resources.cpuRequest?.toString(),
      cpuLimit: resources.cpuLimit?.toString(),
      memoryLimit: resources.memoryLimit?.toString(),
    },
  };
}

/** Every answer that a decision could ask for, not only those that this one did: the next version may ask for more. */
function recordedContext({ pod, status, context }: Omit<Decision, "actions">): RecordedContext {
  const facts = allContainers(pod.spec).map((container) => {
    const current = findContainer(status, container.name);
    const exited = current?.state === "exited" ? current : undefined;
    const running = current?.state === "running" ? current : undefined;
    const answers = {
      backOffEndsAtMs: exited && context.backOffEndsAt(container, exited),
      retryAtMs: context.retryAt(container),
      unhealthy: running && context.unhealthy(container, running),
      started: running && context.started(container, running),
    };
    return [container.name, answers] as const;
  });
  const instances = status.containers.map((container) => {
    const exited = container.state === "exited";
    const restartCause = exited ? context.restartCause(container) : undefined;
    const startsOver = exited && context.startsOver(container) ? true : undefined;
    return [container.id, { evidence: context.evidence(container), restartCause, startsOver }] as const;
  });
  return {
    nowMs: context.nowMs,
    busy: [...context.busy],
    sandboxRetryAtMs: context.sandboxRetryAt,
    sandboxBackOffEndsAtMs: context.sandboxBackOffEndsAt,
    containers: Object.fromEntries(facts),
    instances: Object.fromEntries(instances),
    resize: context.resize && resizeFacts(context.resize),
  };
}

function resizeFacts({ actuated, underWay, retryAtMs, cause }: ResizeFacts): NonNullable<RecordedContext["resize"]> {
  const given = actuated && { containers: Object.fromEntries(actuated.containers), pod: actuated.pod };
  return { actuated: given, underWay, retryAtMs, cause };
}

/** A decision as it is recorded and compared. */
export function recordedActions(actions: PodActions): Decided {
  const { killPod, graces, createSandbox, sandbox: current, restartAll, resize, sandboxWaitUntilMs } = actions;
  return {
    killPod,
    graces: graces && [...graces],
    createSandbox,
    sandbox: current?.id,
    restartAll: restartAll && {
      container: restartAll.source.name,
      id: restartAll.source.id,
      cause: restartAll.cause,
    },
    stop: actions.containersToKill.map(stop),
    start: actions.containersToStart.map(start),
    wait: actions.waits.map(({ container, exited, untilMs, cause }) => {
      return { container: container.name, exited: exited?.id, untilMs, cause };
    }),
    resize: resize && {
      updates: resize.updates.map((update) => {
        return { container: update.container.name, id: update.running.id, change: describeResize(update) };
      }),
      restarts: resize.restarts.map((restart) => ({ stop: stop(restart.kill), start: start(restart.start) })),
      cause: resize.cause,
    },
    sandboxWaitUntilMs,
  };
}

function stop({ container, cause, graceSeconds, restarts }: ContainerToKill): Decided["stop"][number] {
  return { container: container.name, id: container.id, graceSeconds, restarts, cause };
}

function start(action: ContainerToStart): Decided["start"][number] {
  const { container, kind, attempt, restart, leftover, target, cause } = action;
  return { container: container.name, kind, attempt, restart, leftover: leftover?.id, target, cause };
}
