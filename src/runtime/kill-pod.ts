import type { PodRef, Cause } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import { isCriError } from "../ports/cri.ts";
import { shortId } from "./pod-actions.ts";
import type { ContainerStatus, PodStatus, SandboxStatus } from "./pod-status.ts";
import type { RuntimeDependencies } from "./dependencies.ts";

/** StopContainer never gets less, as upstream has it: a container always has a moment to end by itself. */
export const minimumGraceSeconds = 2;

/** What is left to be stopped of a pod. */
export interface Remains {
  readonly containers: readonly ContainerStatus[];
  readonly sandboxes: readonly SandboxStatus[];
}

/** Containers that run or may run, and sandboxes that are ready. */
export function remainsOf(status: PodStatus): Remains {
  return {
    containers: status.containers.filter((container) => container.state === "running" || container.state === "unknown"),
    sandboxes: status.sandboxes.filter((sandbox) => sandbox.ready),
  };
}

/**
 * Stops all containers of a pod at once, each with the same grace, and then its sandboxes.
 * @param graceSeconds time between SIGTERM and SIGKILL; at least {@link minimumGraceSeconds} is given
 * @throws AggregateError with every failure; what could be stopped is stopped
 */
export async function killPod(
  deps: RuntimeDependencies,
  pod: PodRef,
  remains: Remains,
  graceSeconds: number,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  await settleAll(
    `stopping the containers of pod ${pod.name}`,
    remains.containers.map((container) => stopContainer(deps, pod, container, graceSeconds, cause, signal)),
  );
  await settleAll(
    `stopping the sandboxes of pod ${pod.name}`,
    remains.sandboxes.map((sandbox) => stopSandbox(deps, pod, sandbox, cause, signal)),
  );
}

/** Stops one container: its stop signal, and SIGKILL after the grace. Idempotent; one that is gone is stopped. */
export async function stopContainer(
  deps: RuntimeDependencies,
  pod: PodRef,
  container: ContainerStatus,
  graceSeconds: number,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  const timeoutSeconds = Math.max(graceSeconds, minimumGraceSeconds);
  const action = {
    what: "StopContainer",
    message: `stop container ${container.name} (${shortId(container.id)}), grace ${timeoutSeconds} s`,
    pod,
    container: container.name,
    cause,
    data: { id: container.id, graceSeconds: timeoutSeconds },
  };
  await perform(deps.journal, deps.clock, action, () =>
    ignoreNotFound(
      deps.cri.runtime.stopContainer({ containerId: container.id, timeout: BigInt(timeoutSeconds) }, { signal }),
    ),
  );
}

async function stopSandbox(
  deps: RuntimeDependencies,
  pod: PodRef,
  sandbox: SandboxStatus,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  const action = {
    what: "StopPodSandbox",
    message: `stop sandbox ${shortId(sandbox.id)}`,
    pod,
    cause,
    data: { id: sandbox.id },
  };
  await perform(deps.journal, deps.clock, action, () =>
    ignoreNotFound(deps.cri.runtime.stopPodSandbox({ podSandboxId: sandbox.id }, { signal })),
  );
}

/** What is not there needs no stopping and no removing (CRI: these calls are idempotent). */
export async function ignoreNotFound(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isCriError(error, "NotFound")) throw error;
  }
}

/** Waits for all; then throws what failed, together. */
export async function settleAll(what: string, work: readonly Promise<void>[]): Promise<void> {
  const failures = (await Promise.allSettled(work)).filter((result) => result.status === "rejected");
  if (failures.length === 1) throw failures[0]?.reason;
  if (failures.length > 1) {
    const reasons = failures.map((failure) => failure.reason as Error);
    throw new AggregateError(reasons, `${what}: ${reasons.map((reason) => reason.message).join("; ")}`);
  }
}
