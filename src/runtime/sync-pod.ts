import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { Cause } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import { isCriError } from "../ports/cri.ts";
import type { RuntimeDependencies } from "./dependencies.ts";
import { inspectSandbox } from "./inspect.ts";
import { killPod, remainsOf, settleAll, stopContainer } from "./kill-pod.ts";
import { type ContainerToStart, type PodActions, shortId } from "./pod-actions.ts";
import { makePodDirectories } from "./pod-directories.ts";
import { podRef } from "./pod-ref.ts";
import { resolverOf } from "./pod-resolver.ts";
import type { PodStatus } from "./pod-status.ts";
import { generateSandboxConfig, type SandboxConfig } from "./sandbox-config.ts";
import { startContainer, StartError, type StartSandbox } from "./start-container.ts";

/** Why a container is not running, in the words that users know. */
export interface Waiting {
  readonly reason: string;
  readonly message: string;
}

/** How one pass over a pod ended. */
export interface SyncOutcome {
  /** By container name: those that could not be started, and why. */
  readonly waiting: ReadonlyMap<string, Waiting>;
  /** What failed; empty when all was done. */
  readonly failures: readonly string[];
  /** Monotonic ms of the next try of what failed, where the failure says so itself (image back-off). */
  readonly retryAtMs: number | undefined;
}

/**
 * Carries out what {@link PodActions} say: upstream's SyncPod, from step 2 on. Failures are collected, not thrown: one
 * container that can't start leaves the others alone.
 * @throws the signal's reason when it was called off
 */
export async function syncPod(
  deps: RuntimeDependencies,
  pod: Pod,
  status: PodStatus,
  actions: PodActions,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  const outcome = new Outcome();
  try {
    if (actions.killPod !== undefined) {
      await killPod(deps, podRef(pod), remainsOf(status), gracePeriodSeconds(pod), actions.killPod, signal);
      if (actions.createSandbox === undefined) return outcome;
    } else {
      await killContainers(deps, pod, actions, signal);
    }
  } catch (error) {
    signal.throwIfAborted();
    outcome.fail(errorMessage(error));
    return outcome;
  }
  const sandbox = await sandboxFor(deps, pod, actions, outcome, signal);
  if (sandbox === undefined) return outcome;
  await startContainers(deps, pod, sandbox, actions.containersToStart, outcome, signal);
  return outcome;
}

/** `spec.terminationGracePeriodSeconds`, 30 where nothing is said. */
export function gracePeriodSeconds(pod: Pod): number {
  return pod.spec.terminationGracePeriodSeconds ?? 30;
}

class Outcome implements SyncOutcome {
  readonly waiting = new Map<string, Waiting>();
  readonly failures: string[] = [];
  retryAtMs: number | undefined;

  fail(message: string): void {
    this.failures.push(message);
  }

  containerFailed(name: string, error: unknown): void {
    const reason = error instanceof StartError ? error.reason : "RunContainerError";
    this.waiting.set(name, { reason, message: errorMessage(error) });
    this.fail(`container ${name}: ${reason}: ${errorMessage(error)}`);
    const retryAtMs = error instanceof StartError ? error.retryAtMs : undefined;
    if (retryAtMs !== undefined) this.retryAtMs = Math.min(this.retryAtMs ?? retryAtMs, retryAtMs);
  }
}

async function killContainers(
  deps: RuntimeDependencies,
  pod: Pod,
  actions: PodActions,
  signal: AbortSignal,
): Promise<void> {
  await settleAll(
    `stopping containers of pod ${pod.metadata.name}`,
    actions.containersToKill.map(({ container, cause }) =>
      stopContainer(deps, podRef(pod), container, gracePeriodSeconds(pod), cause, signal),
    ),
  );
}

/** The sandbox to start containers in: the one there is, or a new one. Undefined when none could be made. */
async function sandboxFor(
  deps: RuntimeDependencies,
  pod: Pod,
  actions: PodActions,
  outcome: Outcome,
  signal: AbortSignal,
): Promise<StartSandbox | undefined> {
  if (actions.containersToStart.length === 0) return undefined;
  const creation = actions.createSandbox;
  try {
    if (creation !== undefined) return await createSandbox(deps, pod, creation.attempt, creation.cause, signal);
    const current = actions.sandbox;
    if (current === undefined) throw new Error("no sandbox to start containers in");
    const config = await sandboxConfig(deps, pod, current.attempt);
    return { id: current.id, config, ips: current.ips };
  } catch (error) {
    signal.throwIfAborted();
    const waiting = { reason: "CreatePodSandboxError", message: errorMessage(error) };
    for (const { container } of actions.containersToStart) outcome.waiting.set(container.name, waiting);
    outcome.fail(`sandbox: ${errorMessage(error)}`);
    return undefined;
  }
}

async function createSandbox(
  deps: RuntimeDependencies,
  pod: Pod,
  attempt: number,
  cause: Cause,
  signal: AbortSignal,
): Promise<StartSandbox> {
  using _place = await deps.starts.acquire(signal, "later");
  await makePodDirectories(deps.files, deps.node, pod);
  await deps.podCgroups.ensure(pod);
  const config = await sandboxConfig(deps, pod, attempt);
  const action = {
    what: "RunPodSandbox",
    message: attempt === 0 ? "create the sandbox" : `create the sandbox, attempt ${attempt}`,
    pod: podRef(pod),
    cause,
    data: { attempt },
  };
  const { podSandboxId } = await perform(deps.journal, deps.clock, action, () =>
    deps.cri.runtime.runPodSandbox({ config, runtimeHandler: "" }, { signal }),
  );
  const { ips } = await inspectSandbox(deps.cri, podSandboxId, signal);
  if (ips.length === 0 && pod.spec.hostNetwork !== true) {
    throw new Error(`sandbox ${shortId(podSandboxId)} got no IP address from the network plugin`);
  }
  return { id: podSandboxId, config, ips };
}

async function sandboxConfig(deps: RuntimeDependencies, pod: Pod, attempt: number): Promise<SandboxConfig> {
  const { node } = deps;
  return generateSandboxConfig(pod, attempt, {
    podLogsRoot: node.podLogsRoot,
    clusterDomain: node.clusterDomain,
    dns: await resolverOf(deps, pod),
    cgroupDriver: node.cgroupDriver,
    cgroupRoot: node.cgroupRoot,
    resources: node.resources,
  });
}

/**
 * The first start of a pod keeps the order of its spec (a service mesh's proxy goes before the application); a restart
 * waits for no sibling.
 */
async function startContainers(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: StartSandbox,
  starts: readonly ContainerToStart[],
  outcome: Outcome,
  signal: AbortSignal,
): Promise<void> {
  const start = async (toStart: ContainerToStart): Promise<void> => {
    try {
      await startContainer(deps, pod, sandbox, toStart, signal);
    } catch (error) {
      if (signal.aborted && !(error instanceof StartError && isCriError(error.cause))) throw error;
      outcome.containerFailed(toStart.container.name, error);
    }
  };
  const inOrder = async (): Promise<void> => {
    for (const toStart of starts.filter((candidate) => !candidate.restart)) await start(toStart);
  };
  const restarts = starts.filter((candidate) => candidate.restart).map(start);
  const results = await Promise.allSettled([inOrder(), ...restarts]);
  signal.throwIfAborted();
  for (const result of results) if (result.status === "rejected") outcome.fail(errorMessage(result.reason));
}
