import { containersOf } from "../../api/all-containers.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { afterExit, restartsAfter, restartsWhenKilled } from "../../api/restart-policy.ts";
import type { ContainerId, SandboxId } from "../../base/ids.ts";
import type { Cause } from "../../journal/entry.ts";
import { checkActions } from "./check-actions.ts";
import {
  decideRunning,
  decideStart,
  exitCause,
  exitText,
  firstStartCause,
  lastUnhealthy,
  startCause,
  startOf,
  unfinishedCause,
} from "./container-actions.ts";
import { decideInitContainers, initFailure, initKind } from "./init-actions.ts";
import { type ContainerStatus, findContainer, type PodStatus, type SandboxStatus } from "../status/pod-status.ts";
import { decideResize, type PodResize } from "./resize-actions.ts";
import { decideSandbox, type NewSandbox } from "./sandbox-actions.ts";
import type { ContainerDecision, ContainerToKill, ContainerToStart, ContainerWait } from "./container-decision.ts";
import type { PodActionsContext } from "./pod-actions-context.ts";

/** What must be done to bring the runtime to the pod's spec (upstream's podActions, with causes). */
export interface PodActions {
  /**
   * Stop every container and sandbox of the pod; with `createSandbox` they are recreated, otherwise the pod is over.
   */
  readonly killPod: Cause | undefined;
  /** With `killPod`: containers whose grace period differs from the pod's, by their probe. */
  readonly graces?: readonly ContainerGrace[];
  readonly createSandbox: { readonly attempt: number; readonly cause: Cause } | undefined;
  /** The sandbox in which containers start when none is created. */
  readonly sandbox: SandboxStatus | undefined;
  /** Stop and remove every container, the cause's own last; the pod then restarts in its sandbox (KEP-5532). */
  readonly restartAll: RestartAll | undefined;
  readonly containersToKill: readonly ContainerToKill[];
  /** In spec order. */
  readonly containersToStart: readonly ContainerToStart[];
  readonly waits: readonly ContainerWait[];
  /** Change CPU and memory of running containers. */
  readonly resize: PodResize | undefined;
  /** Monotonic milliseconds before which no missing sandbox is created. */
  readonly sandboxWaitUntilMs: number | undefined;
}

export interface ContainerGrace {
  readonly id: ContainerId;
  readonly seconds: number;
}

export interface RestartAll {
  readonly container: Container;
  readonly source: ContainerStatus;
  readonly cause: Cause;
}

/** True when there is nothing to do now (there may still be a wait). */
export function isIdle(actions: PodActions): boolean {
  return (
    actions.killPod === undefined &&
    actions.createSandbox === undefined &&
    actions.restartAll === undefined &&
    actions.containersToKill.length === 0 &&
    actions.containersToStart.length === 0 &&
    actions.resize === undefined
  );
}

/** For a pod in its desired state. */
export const nothingToDo: PodActions = {
  killPod: undefined,
  createSandbox: undefined,
  sandbox: undefined,
  restartAll: undefined,
  containersToKill: [],
  containersToStart: [],
  waits: [],
  resize: undefined,
  sandboxWaitUntilMs: undefined,
};

/**
 * Decides what to do for a pod that should run, from its spec and one observation. Pure: equal arguments give equal
 * actions. The rules are upstream's `computePodActions`; its parts are in sandbox-actions.ts, init-actions.ts and
 * container-actions.ts.
 */
export function computePodActions(pod: Pod, status: PodStatus, given: PodActionsContext): PodActions {
  const actions = decide(pod, status, given);
  checkActions(pod, status, given, actions);
  return actions;
}

function decide(pod: Pod, status: PodStatus, given: PodActionsContext): PodActions {
  const sandbox = decideSandbox(pod, status);
  if (sandbox.recreate !== undefined) {
    const failed = initFailure(pod, status, given);
    if (failed !== undefined) return { ...nothingToDo, killPod: failed };
    const actions = actionsForNewSandbox(pod, status, sandbox, given);
    const untilMs = Math.max(given.sandboxRetryAt ?? 0, given.sandboxBackOffEndsAt ?? 0);
    const waits = actions.createSandbox !== undefined && untilMs > given.nowMs;
    return waits ? { ...nothingToDo, sandboxWaitUntilMs: untilMs } : actions;
  }
  const inSandbox: PodActions = { ...nothingToDo, sandbox: sandbox.current };
  const { restartAll, waits, hasBegun } = decideRestartAll(pod, status, sandbox.current.id, given);
  if (restartAll !== undefined) return { ...inSandbox, restartAll };
  // Until the pod may restart as a whole, its other containers are managed as usual. Once the restart has begun,
  // removed containers wait for it.
  if (hasBegun) return { ...inSandbox, waits };
  const context = { ...given, busy: new Set([...given.busy, ...waits.map(({ container }) => container.name)]) };

  const ephemeral = decideEphemeral(pod, status, context);
  const init = decideInitContainers(pod, status, sandbox.current.id, context);
  if (init.failed !== undefined) return { ...inSandbox, killPod: init.failed };
  const withResize = (decisions: readonly ContainerDecision[]): PodActions => {
    const actions = withDecisions(inSandbox, [...waits.map((wait) => ({ wait })), ...decisions]);
    return { ...actions, resize: decideResize(pod, status, given, decidedNames(actions)) };
  };
  if (!init.initialized) return withResize([...ephemeral, ...init.decisions]);

  const { id } = sandbox.current;
  const regular = pod.spec.containers.map((container) => decideRegular(pod, container, status, id, context));
  const end = decideEnd(pod, status, regular, context);
  if (end !== undefined) return { ...inSandbox, ...end };
  const decisions = regular.filter((decision) => decision !== "over");
  return withResize([...ephemeral, ...init.decisions, ...decisions]);
}

function decidedNames({ containersToKill, containersToStart }: PodActions): ReadonlySet<string> {
  return new Set([...containersToKill, ...containersToStart].map(({ container }) => container.name));
}

function withDecisions(actions: PodActions, decisions: readonly ContainerDecision[]): PodActions {
  return {
    ...actions,
    containersToKill: decisions.flatMap(({ kill }) => kill ?? []),
    containersToStart: decisions.flatMap(({ start }) => start ?? []),
    waits: decisions.flatMap(({ wait }) => wait ?? []),
  };
}

/** A new sandbox restarts the pod, except containers that must not run again. */
function actionsForNewSandbox(
  pod: Pod,
  status: PodStatus,
  { recreate: cause, attempt }: NewSandbox,
  context: PodActionsContext,
): PodActions {
  const kill = status.sandboxes.length > 0 || status.containers.length > 0 ? cause : undefined;
  const toRun = pod.spec.containers.filter((container) => {
    const current = findContainer(status, container.name);
    return !hasRun(current) || runsAgain(pod, container, current, context);
  });
  if (isOver(pod, status, toRun, context)) {
    const isCompleted = pod.spec.containers.every(({ name }) => findContainer(status, name)?.state === "exited");
    const killPod: Cause = { code: "PodCompleted", message: "none of its containers may run again", because: cause };
    return { ...nothingToDo, killPod: isCompleted ? completedCause(pod, status) : killPod };
  }
  const sandbox: PodActions = { ...nothingToDo, killPod: kill, createSandbox: { attempt, cause } };
  const causeOf = (container: Container, current: ContainerStatus | undefined): Cause =>
    current === undefined ? firstStartCause(container) : cause;
  const [first] = pod.spec.initContainers ?? [];
  if (first !== undefined) {
    const current = findContainer(status, first.name);
    const start = startOf(first, initKind(first), current, causeOf(first, current));
    return { ...sandbox, containersToStart: [inOrder(start)] };
  }
  const decisions = toRun.map((container) => {
    const current = findContainer(status, container.name);
    return decideStart(container, "regular", current, causeOf(container, current), context);
  });
  const { containersToStart, waits } = withDecisions(sandbox, decisions);
  return { ...sandbox, containersToStart: containersToStart.map(inOrder), waits };
}

/** The pod starts from the beginning in each sandbox: in order again. */
function inOrder(start: ContainerToStart): ContainerToStart {
  return { ...start, restart: false };
}

/** Nothing justifies a new sandbox. Under Never what ran is not run again, and init containers have. */
function isOver(pod: Pod, status: PodStatus, toRun: readonly Container[], context: PodActionsContext): boolean {
  if (pod.spec.restartPolicy !== "Never" || status.containers.length === 0) return toRun.length === 0;
  return !toRun.some((container) => runsAgain(pod, container, findContainer(status, container.name), context));
}

function hasRun(current: ContainerStatus | undefined): boolean {
  return current !== undefined && current.state !== "created";
}

/**
 * Whether a container may run in the next sandbox even if it has run before. One that still runs is stopped with its
 * sandbox: its policy decides, because rules need an exit code.
 */
function runsAgain(
  pod: Pod,
  container: Container,
  current: ContainerStatus | undefined,
  context: PodActionsContext,
): boolean {
  if (current?.state !== "exited") return restartsWhenKilled(pod, container);
  return context.restartCause(current) !== undefined || restartsAfter(pod, container, current.exitCode);
}

/** "over": it has exited and is not restarted. */
function decideRegular(
  pod: Pod,
  container: Container,
  status: PodStatus,
  sandbox: SandboxId,
  context: PodActionsContext,
): ContainerDecision | "over" {
  if (context.busy.has(container.name)) return {};
  const current = findContainer(status, container.name);
  if (current?.state === "running") return decideRunning(pod, container, "regular", current, context);
  // It was stopped with its sandbox.
  const isLost = current?.state === "unknown" && current.sandboxId !== sandbox;
  if (isLost && !restartsWhenKilled(pod, container)) return "over";
  const cause = startCause(pod, container, current, context);
  if (cause === undefined) return "over";
  const isFirst = instancesIn(status, container, sandbox).every(({ state }) => state === "created");
  if (isFirst && isFirstStartBefore(pod, container, status, sandbox, context)) return {};
  const decision = decideStart(container, "regular", current, cause, context);
  const { start, kill } = decision;
  // What has to be stopped first is an operation of its own.
  return isFirst && start !== undefined && kill === undefined ? { start: inOrder(start) } : decision;
}

/**
 * True while an earlier container of the spec is being started for the first time in the sandbox: first starts keep
 * their order.
 */
function isFirstStartBefore(
  pod: Pod,
  container: Container,
  status: PodStatus,
  sandbox: SandboxId,
  context: PodActionsContext,
): boolean {
  const ahead = pod.spec.containers.slice(0, pod.spec.containers.indexOf(container));
  return ahead.some((other) => {
    const hasEnded = instancesIn(status, other, sandbox).some(({ state }) => state === "exited" || state === "unknown");
    return context.busy.has(other.name) && !hasEnded;
  });
}

/** Only instances of the current sandbox count: in a new one the pod starts from the beginning. */
function instancesIn(status: PodStatus, { name }: Container, sandbox: SandboxId): readonly ContainerStatus[] {
  return status.containers.filter((each) => each.name === name && each.sandboxId === sandbox);
}

/** Ephemeral containers are started once, even before the pod is initialized, and never restarted. */
function decideEphemeral(pod: Pod, status: PodStatus, context: PodActionsContext): ContainerDecision[] {
  return (pod.spec.ephemeralContainers ?? []).flatMap((container): ContainerDecision[] => {
    const current = findContainer(status, container.name);
    if (context.busy.has(container.name) || (current !== undefined && current.state !== "created")) return [];
    const cause = current === undefined ? firstStartCause(container) : unfinishedCause(container, current, context);
    const decision = decideStart(container, "ephemeral", current, cause, context);
    const name = container.targetContainerName;
    if (decision.start === undefined || !name) return [decision];
    // Its start is in progress, and its end wakes the pod's worker.
    if (context.busy.has(name)) return [];
    const target = findContainer(status, name);
    const id = target?.state === "running" ? target.id : undefined;
    return [{ start: { ...decision.start, target: { name, id } } }];
  });
}

/**
 * Containers whose exit restarts the whole pod by rule: now, or when a crash-loop back-off has expired. Upstream has no
 * back-off here, since the exit is forgotten with the container: only its sync rate limits the restarts.
 */
function decideRestartAll(
  pod: Pod,
  status: PodStatus,
  sandbox: SandboxId,
  context: PodActionsContext,
): { readonly restartAll?: RestartAll; readonly waits: readonly ContainerWait[]; readonly hasBegun: boolean } {
  const waits: ContainerWait[] = [];
  let hasBegun = false;
  for (const container of containersOf(pod.spec)) {
    const source = findContainer(status, container.name);
    if (source?.state !== "exited" || source.sandboxId !== sandbox || context.busy.has(container.name)) continue;
    if (afterExit(pod, container, source.exitCode) !== "restartAllContainers") continue;
    const rule: Cause = { code: "RestartPolicyRule", message: "its rule for that restarts all containers of the pod" };
    const cause: Cause = { ...exitCause(source, context, rule), code: "RestartAllContainers" };
    // A pod restart that has begun and failed is retried like any other failed attempt: its back-off is over.
    const isRetry = context.startsOver(source);
    const untilMs = (isRetry ? context.sandboxRetryAt : context.backOffEndsAt(container, source)) ?? 0;
    if (untilMs <= context.nowMs) return { restartAll: { container, source, cause }, waits: [], hasBegun: false };
    waits.push({ container, exited: isRetry ? undefined : source, untilMs, cause });
    hasBegun ||= isRetry;
  }
  return { waits, hasBegun };
}

/**
 * The end of a pod without a continuing regular container: all have ended, or the last ones are being stopped for good
 * because their probes failed. Such a pod is stopped as a whole: liveness probes and restarts end, including those of
 * sidecars, while KEP-4438 would continue them until the regular containers have stopped.
 */
function decideEnd(
  pod: Pod,
  status: PodStatus,
  regular: readonly (ContainerDecision | "over")[],
  context: PodActionsContext,
): Pick<PodActions, "killPod" | "graces"> | undefined {
  const last = pod.spec.containers.flatMap((container, index) => {
    if (regular[index] === "over") return [];
    const current = findContainer(status, container.name);
    const unhealthy = lastUnhealthy(pod, container, current, context);
    return [unhealthy && current && { id: current.id, name: container.name, ...unhealthy }];
  });
  if (last.length === 0) return { killPod: completedCause(pod, status) };
  const stopped = last.filter((each) => each !== undefined);
  const [first] = stopped;
  if (first === undefined || stopped.length < last.length) return undefined;
  const names = stopped.map(({ name }) => name).join(", ");
  const { message, entry, because } = first.cause;
  const killPod: Cause = {
    code: "LastContainerUnhealthy",
    message: `the remaining containers (${names}) are not restarted: ${message}`,
    ...(entry !== undefined && { entry }),
    ...(because !== undefined && { because }),
  };
  const graces = stopped.flatMap(({ id, graceSeconds: seconds }) => (seconds === undefined ? [] : [{ id, seconds }]));
  return graces.length === 0 ? { killPod } : { killPod, graces };
}

function completedCause(pod: Pod, status: PodStatus): Cause {
  const exits = pod.spec.containers.flatMap(({ name }) => {
    const last = findContainer(status, name);
    return last?.state === "exited" ? [exitText(last)] : [];
  });
  return {
    code: "PodCompleted",
    message: `all containers have exited and none is restarted: ${exits.join(", ")}`,
  };
}
