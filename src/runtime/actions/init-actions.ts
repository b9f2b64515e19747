import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { restartsAfter } from "../../api/restart-policy.ts";
import type { SandboxId } from "../../base/ids.ts";
import type { Cause } from "../../journal/entry.ts";
import { decideRunning, decideStart, exitCause, firstStartCause, unfinishedCause } from "./container-actions.ts";
import { type ContainerStatus, findContainer, type PodStatus } from "../status/pod-status.ts";
import type { ContainerDecision, ContainerKind } from "./container-decision.ts";
import type { PodActionsContext } from "./pod-actions-context.ts";

/** The decision for the init containers, and whether the regular ones may start. */
export interface InitDecision {
  /** True when every init container is done: completed, or started if it is a sidecar. */
  readonly initialized: boolean;
  /** In spec order. */
  readonly decisions: readonly ContainerDecision[];
  /** An init container failed for good, so the pod has failed. */
  readonly failed: Cause | undefined;
}

/** Whether an init container keeps running beside the regular ones (a sidecar, KEP-753). */
export function initKind(container: Container): ContainerKind {
  return container.restartPolicy === "Always" ? "sidecar" : "init";
}

/**
 * Init containers one at a time, in order; the next starts when the previous has completed or, for a sidecar, has
 * started. Started sidecars are kept running from then on (upstream's computeInitContainerActions).
 *
 * Only instances of the current sandbox count: in a new one the pod starts from the beginning.
 */
export function decideInitContainers(
  pod: Pod,
  status: PodStatus,
  sandbox: SandboxId,
  context: PodActionsContext,
): InitDecision {
  const containers = pod.spec.initContainers ?? [];
  const inSandbox = (name: string): ContainerStatus | undefined => {
    const current = findContainer(status, name);
    return current?.sandboxId === sandbox ? current : undefined;
  };
  // Once a regular container was created in this sandbox, the init containers are done, even if the runtime has
  // forgotten them. A terminated one counts too: an earlier run may have stopped the sidecars of a completed pod.
  const wasInitialized = pod.spec.containers.some(({ name }) => {
    const state = inSandbox(name)?.state;
    return (state !== undefined && state !== "unknown") || context.busy.has(name);
  });
  // The last one reached shows the progress: earlier ones may have been removed since.
  const reached = wasInitialized
    ? containers.length
    : containers.findLastIndex(({ name }) => context.busy.has(name) || inSandbox(name) !== undefined);
  const decisions: ContainerDecision[] = [];
  let initialized = true;
  for (const [index, container] of containers.entries()) {
    const current = inSandbox(container.name);
    const passed = index < reached;
    if (context.busy.has(container.name)) {
      initialized &&= passed;
    } else if (initKind(container) === "sidecar") {
      const { decision, started } = decideSidecar(
        pod,
        container,
        current,
        findContainer(status, container.name),
        context,
      );
      decisions.push(decision);
      initialized &&= passed || started;
    } else if (!passed) {
      const step = decideInit(pod, container, current, findContainer(status, container.name), context);
      if (step.failed !== undefined) return { initialized: false, decisions: [], failed: step.failed };
      if (step.decision !== undefined) decisions.push(step.decision);
      initialized &&= step.decision === undefined && current?.state === "exited";
    }
    if (!initialized) break;
  }
  return { initialized, decisions, failed: undefined };
}

/** A sidecar always runs: it is started when its turn comes, and whenever it exits. */
function decideSidecar(
  pod: Pod,
  container: Container,
  current: ContainerStatus | undefined,
  newest: ContainerStatus | undefined,
  context: PodActionsContext,
): { readonly decision: ContainerDecision; readonly started: boolean } {
  if (current?.state === "running") {
    const decision = decideRunning(pod, container, "sidecar", current, context);
    const stays = decision.kill === undefined && decision.wait === undefined;
    return { decision, started: stays && context.started(container, current) };
  }
  const because: Cause = { code: "Sidecar", message: "a sidecar is restarted whenever it exits" };
  const cause =
    current === undefined
      ? firstStartCause(container)
      : current.state === "exited"
        ? exitCause(current, context, because)
        : unfinishedCause(container, current, context);
  return { decision: decideStart(container, "sidecar", newest, cause, context), started: false };
}

/** Undefined decision: it is running, or has completed. */
function decideInit(
  pod: Pod,
  container: Container,
  current: ContainerStatus | undefined,
  newest: ContainerStatus | undefined,
  context: PodActionsContext,
): { readonly decision?: ContainerDecision; readonly failed?: Cause } {
  const start = (cause: Cause): { decision: ContainerDecision } => {
    return { decision: decideStart(container, "init", newest, cause, context) };
  };
  if (current === undefined) return start(firstStartCause(container));
  switch (current.state) {
    case "running":
      return {};
    case "created":
      return start(unfinishedCause(container, current, context));
    case "unknown":
    case "exited": {
      if (current.state === "exited" && current.exitCode === 0) return {};
      if (restartsAfter(pod, container, current.exitCode === 0 ? 1 : current.exitCode)) {
        const policy = container.restartPolicy ?? pod.spec.restartPolicy ?? "Always";
        const because: Cause = {
          code: "RestartPolicy",
          message: `restartPolicy ${policy} restarts a failed init container`,
        };
        return start(
          current.state === "exited"
            ? exitCause(current, context, because)
            : unfinishedCause(container, current, context),
        );
      }
      return { failed: failedCause(current, context) };
    }
  }
}

/** Why the pod has failed because of an init container, in whichever sandbox; undefined: none failed. */
export function initFailure(pod: Pod, status: PodStatus, context: PodActionsContext): Cause | undefined {
  for (const container of pod.spec.initContainers ?? []) {
    const last = findContainer(status, container.name);
    if (last?.state !== "exited" || last.exitCode === 0 || initKind(container) === "sidecar") continue;
    if (!restartsAfter(pod, container, last.exitCode)) return failedCause(last, context);
  }
  return undefined;
}

function failedCause(last: ContainerStatus, context: PodActionsContext): Cause {
  const message = `init container ${last.name} failed and is not restarted`;
  const because: Cause = { code: "RestartPolicy", message: "its restartPolicy does not restart it" };
  return { code: "InitContainerFailed", message, because: exitCause(last, context, because) };
}
