import type { Pod } from "../../api/pod.ts";
import { withDeadline } from "../../base/deadline.ts";
import { bothEnded } from "../../base/side-by-side.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Cause } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import type { NameOf } from "../../journal/vocabulary.ts";
import { VolumeError } from "../volume-error.ts";
import { recordActuated } from "../status/actuated.ts";
import { ContainerConfigError } from "../config/container-config-error.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import { containerGraceSeconds, gracePeriodSeconds } from "../actions/grace.ts";
import { inspectSandbox } from "../status/inspect.ts";
import { keepSpec } from "../layout/kept-spec.ts";
import { isSameRange } from "../config/id-ranges.ts";
import { killContainer, killPod, podIPs, remainsOf } from "./kill-pod.ts";
import type { PodActions } from "../actions/pod-actions.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import { withLostAttempts } from "./lost-attempts.ts";
import { makePodDirectories } from "../layout/pod-directories.ts";
import { killContainerError, type OperationProgress, type PodOperation, type StartFailure } from "./pod-operation.ts";
import { userIdsOf } from "../config/namespaces.ts";
import { patiently } from "./patiently.ts";
import { podRef } from "../pod-ref.ts";
import { resolverOf } from "../config/pod-resolver.ts";
import type { PodStatus, SandboxStatus } from "../status/pod-status.ts";
import { resizeOperation } from "./resize-operation.ts";
import { restartAllContainers } from "./restart-all.ts";
import { generateSandboxConfig, type SandboxConfig } from "../config/sandbox-config.ts";
import { StartPlace } from "./start-place.ts";
import { failureOf, startContainer, StartError, type StartSandbox } from "./start-container.ts";
import type { ContainerToKill, ContainerToStart } from "../actions/container-decision.ts";

/**
 * The operations that carry out what {@link PodActions} say (upstream's SyncPod, from step 2 on). The first start of a
 * pod is one operation and keeps the order of the spec, so that a service mesh's proxy is up before the application;
 * each restart is an operation of its own and waits for no sibling.
 */
export function syncPod(deps: RuntimeDependencies, pod: Pod, status: PodStatus, actions: PodActions): PodOperation[] {
  const { createSandbox: creation, sandbox } = actions;
  if (creation !== undefined) return [newSandbox(deps, pod, status, actions, creation)];
  if (actions.restartAll !== undefined) return [restartAllContainers(deps, pod, status, actions.restartAll)];
  if (sandbox === undefined) return [];
  let hasGround = status.containers.length > 0;
  const current = async (cause: Cause, signal: AbortSignal): Promise<StartSandbox> => {
    // Made late, after the pod's earlier life was over, a sandbox has lost what it stands on.
    if (!hasGround) await layGround(deps, pod, cause);
    hasGround = true;
    return currentSandbox(deps, pod, status, sandbox, signal);
  };
  const operations: PodOperation[] = [];
  const inOrder = (starts: readonly ContainerToStart[]): void => {
    if (starts.length === 0) return;
    const containers = starts.map(({ container }) => container.name);
    operations.push({
      name: `start ${containers.join(", ")}`,
      containers,
      wholePod: false,
      run: async (progress, signal) => {
        using place = new StartPlace(deps.starts, deps.clock);
        await startInOrder(deps, pod, { sandbox: current, place }, starts, progress, signal);
      },
    });
  };
  const firstStarts = actions.containersToStart.filter((start) => !start.restart);
  inOrder(firstStarts.filter(({ kind }) => kind !== "ephemeral"));
  for (const start of firstStarts.filter(({ kind }) => kind === "ephemeral")) inOrder([start]);
  const restarts = actions.containersToStart.filter((start) => start.restart);
  const killOf = (name: string): ((signal: AbortSignal) => Promise<void>) | undefined => {
    const kill = actions.containersToKill.find(({ container }) => container.name === name);
    return kill && ((signal) => killOne(deps, pod, sandbox, kill, signal));
  };
  for (const start of restarts) {
    const { name } = start.container;
    operations.push(restartOf(deps, pod, current, name, killOf(name), start));
  }
  if (actions.resize !== undefined) operations.push(resizeOperation(deps, pod, sandbox, actions.resize, current));
  for (const { container } of actions.containersToKill) {
    if (restarts.some((start) => start.container.name === container.name)) continue;
    operations.push(restartOf(deps, pod, current, container.name, killOf(container.name), undefined));
  }
  return operations;
}

function newSandbox(
  deps: RuntimeDependencies,
  pod: Pod,
  status: PodStatus,
  actions: PodActions,
  creation: NonNullable<PodActions["createSandbox"]>,
): PodOperation {
  const starts = actions.containersToStart;
  return {
    name: creation.attempt === 0 ? "start the pod" : "start the pod in a new sandbox",
    containers: starts.map(({ container }) => container.name),
    wholePod: true,
    run: async (progress, signal) => {
      using place = new StartPlace(deps.starts, deps.clock);
      let sandbox: StartSandbox;
      const withoutNetwork = networkFailure(deps, pod, creation.cause);
      if (withoutNetwork !== undefined) return progress.sandboxFailed(withoutNetwork);
      try {
        if (actions.killPod !== undefined) {
          const target = { ref: podRef(pod), pod };
          await killPod(deps, target, remainsOf(status), gracePeriodSeconds(pod), actions.killPod, signal);
        }
        // Before the sandbox, as a pod that waits for a volume needs none, and before a place among the starts: neither
        // costs the runtime anything.
        const [volumes] = await bothEnded(
          deps.volumes.mount(pod, { spec: pod.spec, services: "live" }, creation.cause, signal),
          layGround(deps, pod, creation.cause),
        );
        sandbox = { ...(await createSandbox(deps, pod, creation.attempt, creation.cause, place, signal)), volumes };
      } catch (error) {
        signal.throwIfAborted();
        const reason = error instanceof VolumeError ? "ContainerCreating" : "CreatePodSandboxError";
        progress.sandboxFailed({ reason, message: errorMessage(error), retryAtMs: undefined, error });
        return;
      }
      progress.sandboxMade();
      await startInOrder(deps, pod, { sandbox: async () => sandbox, place }, starts, progress, signal);
    },
  };
}

/**
 * The runtime would make the sandbox and take it down again: a pod that needs its network waits until it is told that this
 * is up.
 */
function networkFailure(deps: RuntimeDependencies, pod: Pod, cause: Cause): StartFailure | undefined {
  const problem = pod.spec.hostNetwork === true ? undefined : deps.networkProblem();
  if (problem === undefined) return undefined;
  const message = `network is not ready: ${problem}`;
  deps.journal.record({ kind: "observation", what: "NetworkNotReady", message, pod: podRef(pod), cause });
  return { reason: "ContainerCreating", message, retryAtMs: undefined };
}

/** Stops the instance that runs, when there is one to be stopped, and starts the next, when there is to be one. */
function restartOf(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: (cause: Cause, signal: AbortSignal) => Promise<StartSandbox>,
  name: string,
  kill: ((signal: AbortSignal) => Promise<void>) | undefined,
  start: ContainerToStart | undefined,
): PodOperation {
  return {
    name: `${start === undefined ? "stop" : "restart"} container ${name}`,
    containers: [name],
    wholePod: false,
    run: async (progress, signal) => {
      try {
        await kill?.(signal);
        using place = new StartPlace(deps.starts, deps.clock);
        if (start !== undefined) {
          const into = await sandbox(start.cause, signal);
          await startContainer(deps, pod, into, start, { place, progress }, signal);
        }
        progress.settled(name, undefined);
      } catch (error) {
        signal.throwIfAborted();
        progress.settled(name, failureOf(error));
      }
    },
  };
}

/**
 * The sandbox that the pod has, for containers that start in it.
 * @throws Error when it has ids that are not the pod's; it is stopped, and so made anew by the next decision
 */
async function currentSandbox(
  deps: RuntimeDependencies,
  pod: Pod,
  status: PodStatus,
  sandbox: SandboxStatus,
  signal: AbortSignal,
): Promise<StartSandbox> {
  const config = await sandboxConfig(deps, pod, sandbox.attempt);
  const ids = userIdsOf(config.linux?.securityContext?.namespaceOptions);
  // Its containers would run with the ids of the sandbox, and find their files to be those of others.
  if (ids !== undefined && sandbox.userIds !== undefined && !isSameRange(ids, sandbox.userIds)) {
    const message = `sandbox ${shortId(sandbox.id)} has other users than its pod`;
    const cause: Cause = { code: "SandboxUsersDiffer", message };
    await killPod(deps, { ref: podRef(pod), pod }, remainsOf(status), gracePeriodSeconds(pod), cause, signal);
    throw new Error(`${message}: another one is made`);
  }
  return { id: sandbox.id, ips: sandbox.ips, config };
}

async function killOne(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: SandboxStatus,
  { container, cause, graceSeconds, eventMessage }: ContainerToKill,
  signal: AbortSignal,
): Promise<void> {
  const target = { ref: podRef(pod), pod };
  const addressed = { ...target, ips: podIPs(deps, target, [sandbox]) };
  try {
    const grace = containerGraceSeconds(pod, graceSeconds);
    await killContainer(deps, addressed, { ...container, eventMessage }, grace, cause, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new StartError(killContainerError, errorMessage(error), { cause: error });
  }
}

/** One that can't be started holds up no other. */
async function startInOrder(
  deps: RuntimeDependencies,
  pod: Pod,
  into: {
    readonly sandbox: (cause: Cause, signal: AbortSignal) => Promise<StartSandbox>;
    readonly place: StartPlace;
  },
  starts: readonly ContainerToStart[],
  progress: OperationProgress,
  signal: AbortSignal,
): Promise<void> {
  for (const [index, start] of starts.entries()) {
    try {
      const counted = await withLostAttempts(deps, pod, start);
      const { volumes, ...rest } = await into.sandbox(start.cause, signal);
      const sandbox = index === 0 ? { ...rest, volumes } : rest;
      await startContainer(deps, pod, sandbox, counted, { place: into.place, progress }, signal);
      progress.settled(start.container.name, undefined);
    } catch (error) {
      signal.throwIfAborted();
      progress.settled(start.container.name, failureOf(error));
    }
  }
}

/** @throws ContainerConfigError when the pod's RuntimeClass is not there */
function runtimeHandlerOf({ objects }: RuntimeDependencies, { spec }: Pod): string {
  if (!spec.runtimeClassName) return "";
  const handler = objects.runtimeHandler?.(spec.runtimeClassName);
  if (handler !== undefined) return handler;
  throw new ContainerConfigError(`runtimeclass.node.k8s.io ${JSON.stringify(spec.runtimeClassName)} not found`);
}

async function createSandbox(
  deps: RuntimeDependencies,
  pod: Pod,
  attempt: number,
  cause: Cause,
  place: StartPlace,
  signal: AbortSignal,
): Promise<StartSandbox> {
  const queuedMs = await place.take("later", signal);
  const request = await told(deps, pod, cause, "SandboxConfigError", () => sandboxRequest(deps, pod, attempt));
  const action: ActionInput = {
    what: "RunPodSandbox",
    message: attempt === 0 ? "create the sandbox" : `create the sandbox, attempt ${attempt}`,
    pod: podRef(pod),
    cause,
    data: { attempt, queuedMs },
  };
  signal.throwIfAborted();
  const { podSandboxId } = await perform(deps.journal, deps.clock, action, () =>
    patiently(deps, "a sandbox", signal, (options) => deps.cri.runtime.runPodSandbox(request, options)),
  );
  const look = (): Promise<SandboxStatus> => inspectSandbox(deps.cri, podSandboxId, signal);
  const { ips } = await told(deps, pod, cause, "FailedPodSandBoxStatus", look, signal);
  await told(deps, pod, cause, "SandboxConfigError", async () => {
    if (ips.length > 0 || pod.spec.hostNetwork === true) return;
    throw new Error(`sandbox ${shortId(podSandboxId)} got no IP address from the network plugin`);
  });
  return { id: podSandboxId, config: request.config, ips };
}

/** The kernel and the disk do this in some ms; past this the pod is told to wait for it, and it is tried again. */
const groundLimitMs = 120_000;

/**
 * What is there before anything of the pod runs, and goes when the pod is removed.
 * @throws DeadlineError
 */
async function layGround(deps: RuntimeDependencies, pod: Pod, cause: Cause): Promise<void> {
  const { files, node, podCgroups } = deps;
  const name = `${pod.metadata.namespace}/${pod.metadata.name}`;
  const part = (failure: NameOf<"observation">, what: string, work: () => Promise<void>): Promise<void> =>
    told(deps, pod, cause, failure, () =>
      withDeadline(deps.clock, `the ${what} of pod ${name}`, groundLimitMs, undefined, work),
    );
  await part("FailedMakePodDataDirectories", "directories", () => makePodDirectories(files, node, pod));
  await bothEnded(
    part("FailedMakePodDataDirectories", "kept spec", () => keepSpec(files, node, pod, "start")),
    part("FailedCreatePodContainer", "cgroup", () => podCgroups.ensure(pod)),
  );
  recordActuated(deps, pod, undefined);
}

interface SandboxRequest {
  readonly config: SandboxConfig;
  readonly runtimeHandler: string;
}

async function sandboxRequest(deps: RuntimeDependencies, pod: Pod, attempt: number): Promise<SandboxRequest> {
  return { config: await sandboxConfig(deps, pod, attempt), runtimeHandler: runtimeHandlerOf(deps, pod) };
}

/** What is no action of the runtime's: nothing tells of its failure, so an observation of this name does. */
async function told<T>(
  { journal }: RuntimeDependencies,
  pod: Pod,
  cause: Cause,
  what: NameOf<"observation">,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    journal.record({ kind: "observation", what, message: errorMessage(error), pod: podRef(pod), cause });
    throw error;
  }
}

async function sandboxConfig(deps: RuntimeDependencies, pod: Pod, attempt: number): Promise<SandboxConfig> {
  const { node } = deps;
  const userNamespace = await deps.userNamespaces.namespaceOf(pod);
  return generateSandboxConfig(pod, attempt, {
    podLogsRoot: node.podLogsRoot,
    clusterDomain: node.clusterDomain,
    dns: await resolverOf(deps, pod),
    cgroupDriver: node.cgroupDriver,
    cgroupRoot: node.cgroupRoot,
    resources: node.resources,
    ...(userNamespace && { userNamespace }),
  });
}
