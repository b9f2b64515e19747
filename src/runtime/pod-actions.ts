import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { containerHash } from "./hash.ts";
import { type ContainerStatus, findContainer, type PodStatus, type SandboxStatus } from "./pod-status.ts";

/** A running container that has to stop although its pod goes on. */
export interface ContainerToKill {
  readonly container: ContainerStatus;
  readonly cause: Cause;
}

export interface ContainerToStart {
  readonly container: Container;
  /** The restart count of the new instance: the `attempt` of its CRI metadata. */
  readonly attempt: number;
  /** True when an instance was started before: a restart waits for no sibling. */
  readonly restart: boolean;
  /** An instance that was created and never started: it is removed first, so that its attempt can be used again. */
  readonly leftover: ContainerStatus | undefined;
  readonly cause: Cause;
}

/** A container that would start now if it had not to wait. */
export interface ContainerWait {
  readonly container: Container;
  /** The instance whose crash-loop back-off it is; undefined when the last start failed and is tried again later. */
  readonly exited: ContainerStatus | undefined;
  /** Monotonic milliseconds. */
  readonly untilMs: number;
  readonly cause: Cause;
}

/** What has to be done so that the runtime shows what the pod's spec says (upstream's podActions, with causes). */
export interface PodActions {
  /** Stop every container and sandbox of the pod; with `createSandbox` they are made anew, otherwise it is over. */
  readonly killPod: Cause | undefined;
  readonly createSandbox: { readonly attempt: number; readonly cause: Cause } | undefined;
  /** The sandbox in which containers start when none is created. */
  readonly sandbox: SandboxStatus | undefined;
  readonly containersToKill: readonly ContainerToKill[];
  /** In spec order. */
  readonly containersToStart: readonly ContainerToStart[];
  readonly waits: readonly ContainerWait[];
  /** Monotonic milliseconds before which no sandbox is made, although one is missing. */
  readonly sandboxWaitUntilMs: number | undefined;
}

/** What the decision depends on beside the spec and the runtime's state. Plain facts, read only. */
export interface PodActionsContext {
  /** Monotonic milliseconds. */
  readonly nowMs: number;
  /** Containers that an operation is starting or stopping at this moment: nothing is decided about them. */
  readonly busy: ReadonlySet<string>;
  /** End of the crash-loop back-off that follows this exit, in monotonic milliseconds; undefined: none. */
  readonly backOffEndsAt: (container: Container, exited: ContainerStatus) => number | undefined;
  /** When a start that failed may be tried again, in monotonic milliseconds; undefined: none failed. */
  readonly retryAt: (container: Container) => number | undefined;
  /** The same for the sandbox. */
  readonly sandboxRetryAt: number | undefined;
  /** The journal entry in which a container's last change was seen. */
  readonly evidence: (container: ContainerStatus) => number | undefined;
}

/** True when there is nothing to do now (there may still be a wait). */
export function isIdle(actions: PodActions): boolean {
  return (
    actions.killPod === undefined &&
    actions.createSandbox === undefined &&
    actions.containersToKill.length === 0 &&
    actions.containersToStart.length === 0
  );
}

/**
 * Decides what to do for a pod that is to run, from its spec and one observation of the runtime. Pure: the same
 * arguments give the same actions. The rules are upstream's `computePodActions` for sandboxes and regular containers.
 */
export function computePodActions(pod: Pod, status: PodStatus, context: PodActionsContext): PodActions {
  const sandbox = decideSandbox(pod, status);
  if (sandbox.recreate !== undefined) {
    const actions = actionsForNewSandbox(pod, status, sandbox.recreate, sandbox.attempt);
    const waits = actions.createSandbox !== undefined && (context.sandboxRetryAt ?? 0) > context.nowMs;
    return waits ? { ...nothingToDo, sandboxWaitUntilMs: context.sandboxRetryAt } : actions;
  }

  const toKill: ContainerToKill[] = [];
  const toStart: ContainerToStart[] = [];
  const waits: ContainerWait[] = [];
  let keepCount = 0;
  for (const container of pod.spec.containers) {
    if (context.busy.has(container.name)) {
      keepCount++;
      continue;
    }
    const current = findContainer(status, container.name);
    if (current?.state === "running") {
      const changed = hashChange(container, current);
      if (changed === undefined) {
        keepCount++;
      } else {
        toKill.push({ container: current, cause: changed });
        toStart.push({
          container,
          attempt: current.restartCount + 1,
          restart: true,
          leftover: undefined,
          cause: changed,
        });
      }
      continue;
    }
    const cause = startCause(pod, container, current, context);
    if (cause === undefined) continue;
    if (current?.state === "unknown") toKill.push({ container: current, cause });
    const wait = waitOf(container, current, cause, context);
    if (wait === undefined) toStart.push(startOf(container, current, cause));
    else waits.push(wait);
  }
  const over = keepCount === 0 && toStart.length === 0 && waits.length === 0;
  return {
    killPod: over ? completedCause(pod, status) : undefined,
    createSandbox: undefined,
    sandbox: sandbox.current,
    containersToKill: over ? [] : toKill,
    containersToStart: toStart,
    waits,
    sandboxWaitUntilMs: undefined,
  };
}

const nothingToDo: PodActions = {
  killPod: undefined,
  createSandbox: undefined,
  sandbox: undefined,
  containersToKill: [],
  containersToStart: [],
  waits: [],
  sandboxWaitUntilMs: undefined,
};

/** The later of crash-loop back-off and the pause after a failed start; undefined when neither is to come. */
function waitOf(
  container: Container,
  current: ContainerStatus | undefined,
  cause: Cause,
  { nowMs, backOffEndsAt, retryAt }: PodActionsContext,
): ContainerWait | undefined {
  const exited = current?.state === "exited" ? current : undefined;
  const backOffMs = exited === undefined ? undefined : backOffEndsAt(container, exited);
  if (backOffMs !== undefined && backOffMs > nowMs) return { container, exited, untilMs: backOffMs, cause };
  const retryMs = retryAt(container);
  return retryMs !== undefined && retryMs > nowMs
    ? { container, exited: undefined, untilMs: retryMs, cause }
    : undefined;
}

type SandboxDecision =
  | { readonly recreate: Cause; readonly attempt: number }
  | { readonly recreate: undefined; readonly current: SandboxStatus };

/** Census §5.1 "sandbox recreate when": none, more than one ready, newest not ready, network mode changed, no address. */
function decideSandbox(pod: Pod, status: PodStatus): SandboxDecision {
  const newest = status.sandboxes[0];
  if (newest === undefined) {
    return { recreate: { code: "SandboxMissing", message: "the pod has no sandbox" }, attempt: 0 };
  }
  const attempt = newest.attempt + 1;
  const wantsHostNetwork = pod.spec.hostNetwork === true;
  if (status.sandboxes.filter((sandbox) => sandbox.ready).length > 1) {
    return { recreate: { code: "SandboxSurplus", message: "the pod has more than one ready sandbox" }, attempt };
  }
  if (!newest.ready) {
    return { recreate: { code: "SandboxNotReady", message: `sandbox ${shortId(newest.id)} is not ready` }, attempt };
  }
  if (newest.hostNetwork !== wantsHostNetwork) {
    const wanted = wantsHostNetwork ? "the node's network" : "a network of its own";
    return { recreate: { code: "SandboxNetworkChanged", message: `the pod now wants ${wanted}` }, attempt };
  }
  if (!wantsHostNetwork && newest.ips.length === 0) {
    return {
      recreate: { code: "SandboxWithoutAddress", message: `sandbox ${shortId(newest.id)} has no IP address` },
      attempt,
    };
  }
  return { recreate: undefined, current: newest };
}

/** A new sandbox means new containers, save those that succeeded and would not be restarted. */
function actionsForNewSandbox(pod: Pod, status: PodStatus, cause: Cause, attempt: number): PodActions {
  const kill = status.sandboxes.length > 0 || status.containers.length > 0 ? cause : undefined;
  const none: PodActions = { ...nothingToDo, killPod: kill };
  const policy = pod.spec.restartPolicy ?? "Always";
  // With Never, what ran in an earlier sandbox is not run again in a new one.
  if (policy === "Never" && status.containers.length > 0) {
    return { ...none, killPod: neverRestartsCause(cause) };
  }
  const containersToStart: ContainerToStart[] = [];
  for (const container of pod.spec.containers) {
    const current = findContainer(status, container.name);
    if (current !== undefined && policy === "OnFailure" && succeeded(current)) continue;
    containersToStart.push(startOf(container, current, current === undefined ? firstStartCause(container) : cause));
  }
  if (containersToStart.length === 0) return { ...none, killPod: completedCause(pod, status) };
  return { ...none, createSandbox: { attempt, cause }, containersToStart };
}

function startOf(container: Container, current: ContainerStatus | undefined, cause: Cause): ContainerToStart {
  if (current === undefined) return { container, attempt: 0, restart: false, leftover: undefined, cause };
  if (current.state === "created") {
    const attempt = current.restartCount;
    return { container, attempt, restart: attempt > 0, leftover: current, cause };
  }
  return { container, attempt: current.restartCount + 1, restart: true, leftover: undefined, cause };
}

/** Why a container that is not running has to start; undefined when its restart policy says no. */
function startCause(
  pod: Pod,
  container: Container,
  current: ContainerStatus | undefined,
  context: PodActionsContext,
): Cause | undefined {
  if (current === undefined) return firstStartCause(container);
  const entry = context.evidence(current);
  const evidence = entry === undefined ? {} : { entry };
  if (current.state === "created") {
    return {
      code: "ContainerNeverStarted",
      message: `container ${container.name} was created but not started`,
      ...evidence,
    };
  }
  if (current.state === "unknown") {
    return { code: "ContainerUnknown", message: `the runtime lost track of container ${container.name}`, ...evidence };
  }
  const policy = pod.spec.restartPolicy ?? "Always";
  if (policy === "Never" || (policy === "OnFailure" && succeeded(current))) return undefined;
  return {
    code: "ContainerExited",
    message: exitText(current),
    ...evidence,
    because: { code: "RestartPolicy", message: `restartPolicy ${policy} restarts it` },
  };
}

function firstStartCause(container: Container): Cause {
  return { code: "ContainerMissing", message: `container ${container.name} has not been started yet` };
}

function hashChange(container: Container, current: ContainerStatus): Cause | undefined {
  // A container without the annotation was not made by a kubelet of today: leave it alone rather than kill it.
  if (current.hash === "" || current.hash === containerHash(container)) return undefined;
  return {
    code: "ContainerDefinitionChanged",
    message: `the definition of container ${container.name} changed (image ${current.image} → ${container.image ?? ""})`,
  };
}

function completedCause(pod: Pod, status: PodStatus): Cause {
  const policy = pod.spec.restartPolicy ?? "Always";
  const exits = pod.spec.containers
    .map((container) => findContainer(status, container.name))
    .filter((container) => container !== undefined)
    .map(exitText);
  return {
    code: "PodCompleted",
    message: `all containers have ended and restartPolicy ${policy} restarts none: ${exits.join(", ")}`,
  };
}

function neverRestartsCause(because: Cause): Cause {
  return { code: "PodCompleted", message: "restartPolicy Never runs no container a second time", because };
}

/** `container web exited with code 3 (Error)`. */
export function exitText(container: ContainerStatus): string {
  const reason = container.reason === "" ? "" : ` (${container.reason})`;
  return `container ${container.name} exited with code ${container.exitCode}${reason}`;
}

function succeeded(container: ContainerStatus): boolean {
  return container.state === "exited" && container.exitCode === 0;
}

/** The first 12 characters, as people know ids from `crictl` and `docker`. */
export function shortId(id: string): string {
  return id.slice(0, 12);
}
