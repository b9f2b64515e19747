import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { afterExit, restartsWhenKilled } from "../../api/restart-policy.ts";
import type { Cause } from "../../journal/entry.ts";
import { containerHash } from "../config/hash.ts";
import type { ContainerStatus } from "../status/pod-status.ts";
import type {
  ContainerDecision,
  ContainerKind,
  ContainerToStart,
  ContainerWait,
  Unhealthy,
} from "./container-decision.ts";
import type { PodActionsContext } from "./pod-actions-context.ts";

/**
 * For a running container: stop it when its definition changed or a probe failed, after a pause if the last attempt
 * failed; otherwise nothing.
 */
export function decideRunning(
  pod: Pod,
  container: Container,
  kind: ContainerKind,
  running: ContainerStatus,
  context: PodActionsContext,
): ContainerDecision {
  const decision = decideStop(pod, container, kind, running, context);
  const retryMs = context.retryAt(container);
  if (decision.kill === undefined || retryMs === undefined || retryMs <= context.nowMs) return decision;
  return { wait: { container, exited: undefined, untilMs: retryMs, cause: decision.kill.cause } };
}

function decideStop(
  pod: Pod,
  container: Container,
  kind: ContainerKind,
  running: ContainerStatus,
  context: PodActionsContext,
): ContainerDecision {
  const attempt = running.restartCount + 1;
  const again = (cause: Cause): ContainerToStart => {
    return { container, kind, attempt, restart: true, leftover: undefined, cause };
  };
  const changed = hashChange(container, running);
  if (changed !== undefined) {
    const eventMessage = killWords(container, kind, "definition changed", true);
    return { kill: { container: running, cause: changed, restarts: true, eventMessage }, start: again(changed) };
  }
  const unhealthy = context.unhealthy(container, running);
  if (unhealthy === undefined) return {};
  const { cause, graceSeconds } = unhealthy;
  // The restart is decided when the exit is seen, so that its back-off counts.
  const restarts = kind === "sidecar" || restartsWhenKilled(pod, container);
  const failed = `failed ${cause.code === "StartupProbeFailed" ? "startup" : "liveness"} probe`;
  const eventMessage = killWords(container, kind, failed, restarts);
  const grace = graceSeconds === undefined ? {} : { graceSeconds };
  return { kill: { container: running, cause, ...grace, restarts, eventMessage } };
}

/** Set for a running container that failed its probe and is not restarted, whatever its exit code. */
export function lastUnhealthy(
  pod: Pod,
  container: Container,
  current: ContainerStatus | undefined,
  context: PodActionsContext,
): Unhealthy | undefined {
  if (current?.state !== "running" || hashChange(container, current) !== undefined) return undefined;
  const mayRestart = restartsWhenKilled(pod, container) || (container.restartPolicyRules ?? []).length > 0;
  return mayRestart ? undefined : context.unhealthy(container, current);
}

/** The wording of upstream's computePodActions. */
function killWords({ name }: Container, kind: ContainerKind, why: string, restarts: boolean): string {
  if (kind === "sidecar") return `Init container ${name} ${why}`;
  return `Container ${name} ${why}${restarts ? ", will be restarted" : ""}`;
}

/** A container that is not running and should be started: now, or when its wait is over. */
export function decideStart(
  container: Container,
  kind: ContainerKind,
  current: ContainerStatus | undefined,
  cause: Cause,
  context: PodActionsContext,
): ContainerDecision {
  const wait = waitOf(container, current, cause, context);
  if (wait !== undefined) return { wait };
  const start = startOf(container, kind, current, cause);
  if (current?.state !== "unknown") return { start };
  const which = kind === "init" || kind === "sidecar" ? "Init container" : "Container";
  const eventMessage = `${which} is in "unknown" state, try killing it before restart`;
  return { kill: { container: current, cause, eventMessage }, start };
}

export function startOf(
  container: Container,
  kind: ContainerKind,
  current: ContainerStatus | undefined,
  cause: Cause,
): ContainerToStart {
  if (current === undefined) return { container, kind, attempt: 0, restart: false, leftover: undefined, cause };
  if (current.state === "created") {
    const attempt = current.restartCount;
    return { container, kind, attempt, restart: attempt > 0, leftover: current, cause };
  }
  return { container, kind, attempt: current.restartCount + 1, restart: true, leftover: undefined, cause };
}

/** The later of crash-loop back-off and the retry delay after a failed start; undefined when neither applies. */
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

/** Why a regular container that is not running must start; undefined when its policy forbids it. */
export function startCause(
  pod: Pod,
  container: Container,
  current: ContainerStatus | undefined,
  context: PodActionsContext,
): Cause | undefined {
  if (current === undefined) return firstStartCause(container);
  if (current.state !== "exited") return unfinishedCause(container, current, context);
  const stopped = context.restartCause(current);
  if (stopped !== undefined) return exitCause(current, context, stopped);
  if (afterExit(pod, container, current.exitCode) === "stay") return undefined;
  const own = container.restartPolicy;
  const policy = own === undefined ? `restartPolicy ${pod.spec.restartPolicy ?? "Always"}` : `its restartPolicy ${own}`;
  return exitCause(current, context, { code: "RestartPolicy", message: `${policy} restarts it` });
}

/** The cause of replacing a container that was only created, or whose state the runtime lost. */
export function unfinishedCause(container: Container, current: ContainerStatus, context: PodActionsContext): Cause {
  const evidence = evidenceOf(current, context);
  if (current.state === "created") {
    const message = `container ${container.name} was created but not started`;
    return { code: "ContainerNeverStarted", message, ...evidence };
  }
  return { code: "ContainerUnknown", message: `the runtime lost track of container ${container.name}`, ...evidence };
}

export function exitCause(current: ContainerStatus, context: PodActionsContext, because: Cause): Cause {
  return { code: "ContainerExited", message: exitText(current), ...evidenceOf(current, context), because };
}

export function firstStartCause(container: Container): Cause {
  return { code: "ContainerMissing", message: `container ${container.name} has not been started yet` };
}

function evidenceOf(current: ContainerStatus, context: PodActionsContext): { entry?: number } {
  const entry = context.evidence(current);
  return entry === undefined ? {} : { entry };
}

function hashChange(container: Container, current: ContainerStatus): Cause | undefined {
  // A container without the annotation was not created by a current kubelet: leave it alone.
  if (current.hash === "" || current.hash === containerHash(container)) return undefined;
  return {
    code: "ContainerDefinitionChanged",
    message: `the definition of container ${container.name} changed (image ${current.image} → ${container.image ?? ""})`,
  };
}

/** `container web exited with code 3 (Error)`. */
export function exitText(container: ContainerStatus): string {
  const reason = container.reason === "" ? "" : ` (${container.reason})`;
  return `container ${container.name} exited with code ${container.exitCode}${reason}`;
}
