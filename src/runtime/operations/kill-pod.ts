import { allContainers } from "../../api/all-containers.ts";
import type { Pod } from "../../api/pod.ts";
import type { ContainerId } from "../../base/ids.ts";
import { DeadlineError, withDeadline } from "../../base/deadline.ts";
import { errorMessage } from "../../base/errors.ts";
import { settleAll } from "../../base/side-by-side.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import { stopTimeoutSeconds } from "../actions/grace.ts";
import { hideSecrets } from "../config/hidden-secrets.ts";
import type { NodeContext } from "../node-context.ts";
import type { ContainerStatus, PodStatus, SandboxStatus } from "../status/pod-status.ts";
import { runPreStop } from "./pre-stop.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import { type StoredHook, storedHook } from "./stored-hook.ts";
import { inTeardown } from "./teardown.ts";
import { tellKill, type ToldContainer } from "./tell-kill.ts";
import { terminationOrder } from "../actions/termination-order.ts";
import { ignoreNotFound, removeUnstarted } from "./unstarted.ts";

/** What is left to be stopped of a pod. */
export interface Remains {
  readonly containers: readonly ContainerStatus[];
  /** Created and never started. */
  readonly unstarted: readonly ContainerStatus[];
  readonly sandboxes: readonly SandboxStatus[];
  /** Seconds from now that single containers have at most, by id. */
  readonly graces?: ReadonlyMap<ContainerId, number>;
}

/** Containers that run or may run, and every sandbox: one that died by itself holds its network until it is stopped. */
export function remainsOf(status: PodStatus): Remains {
  const unstarted = status.containers.filter(({ state }) => state === "created");
  return { containers: status.containers.filter(mayRun), unstarted, sandboxes: status.sandboxes };
}

/** True when nothing of the pod runs. */
export function hasStopped({ containers, sandboxes }: PodStatus): boolean {
  return !containers.some(mayRun) && !sandboxes.some((sandbox) => sandbox.ready);
}

function mayRun({ state }: ContainerStatus): boolean {
  return state === "running" || state === "unknown";
}

/** What stopping needs. */
export type KillDependencies = Pick<
  RuntimeDependencies,
  "clock" | "cri" | "files" | "journal" | "log" | "networkProbes" | "objects" | "preStops" | "teardowns"
> & { readonly node: Pick<NodeContext, "containerLogsRoot" | "hostIPs" | "podLogsRoot"> };

/** A pod that is stopped, or of which a container is. */
export interface KillTarget {
  readonly ref: PodRef;
  /** Undefined for a pod that only the runtime knows: the order of its sidecars is forgotten, its hooks are not. */
  readonly pod: Pod | undefined;
}

/** With the pod's addresses, the primary one first, for httpGet hooks. */
export interface AddressedTarget extends KillTarget {
  readonly ips: readonly string[];
}

/**
 * Stops all containers of a pod, removes those that never ran, and then stops its sandboxes. Every preStop hook begins at once, and what it takes counts; a
 * sidecar is stopped when what has to end before it has ended ({@link terminationOrder}). Whoever still waits when the
 * grace is over gets its stop signal then, and SIGKILL minimumGraceSeconds later. May be called again while a
 * hook of an earlier call goes on.
 * @param graceSeconds from now to SIGKILL; 0 or less: no hook begins, and nothing waits
 * @throws AggregateError with every failure; what could be stopped is stopped
 */
export async function killPod(
  deps: KillDependencies,
  target: KillTarget,
  remains: Remains,
  graceSeconds: number,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  const { containers, unstarted, sandboxes } = remains;
  const addressed = { ...target, ips: podIPs(deps, target, sandboxes) };
  const killOf = ({ id }: ContainerStatus): Kill => {
    const seconds = Math.min(remains.graces?.get(id) ?? graceSeconds, graceSeconds);
    return { target: addressed, ...timeOf(deps, seconds), cause, signal };
  };
  const order = terminationOrder(target.pod, new Set(containers.map(({ name }) => name)));
  const stops = containers.map((container) => ({ container, stopped: Promise.withResolvers<void>() }));
  const turnOf = async (name: string): Promise<void> => {
    const before = order.get(name) ?? [];
    await Promise.all(
      stops.filter(({ container }) => before.includes(container.name)).map(({ stopped }) => stopped.promise),
    );
  };
  await settleAll(
    `stopping the containers of pod ${target.ref.name}`,
    stops.map(async ({ container, stopped }) => {
      signal.throwIfAborted();
      tellKill(deps, target.ref, container, cause);
      const kill = killOf(container);
      await preStop(deps, kill, container);
      if (order.has(container.name)) {
        await untilGraceEnds(deps, kill, `turn of container ${container.name} to stop`, turnOf(container.name));
      }
      await stop(deps, kill, container);
      stopped.resolve();
    }),
  );
  await settleAll(
    `removing what never ran of pod ${target.ref.name}`,
    unstarted.map((container) => removeUnstarted(deps, target.ref, container, cause, signal)),
  );
  await settleAll(
    `stopping the sandboxes of pod ${target.ref.name}`,
    sandboxes.map((sandbox) => stopSandbox(deps, target.ref, sandbox, cause, signal)),
  );
}

/**
 * Stops one container: its preStop hook, its stop signal, and SIGKILL when the grace is over. Idempotent; one that is
 * gone is stopped.
 * @param graceSeconds 0 or less: no hook begins
 */
export async function killContainer(
  deps: KillDependencies,
  target: AddressedTarget,
  container: ToldContainer,
  graceSeconds: number,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  const kill: Kill = { target, ...timeOf(deps, graceSeconds), cause, signal };
  signal.throwIfAborted();
  tellKill(deps, target.ref, container, cause);
  await preStop(deps, kill, container);
  await stop(deps, kill, container);
}

interface Kill {
  readonly target: AddressedTarget;
  readonly graceSeconds: number;
  /** Monotonic ms. */
  readonly killAtMs: number;
  readonly cause: Cause;
  readonly signal: AbortSignal;
}

function timeOf({ clock }: KillDependencies, graceSeconds: number): Pick<Kill, "graceSeconds" | "killAtMs"> {
  return { graceSeconds, killAtMs: clock.monotonic() + graceSeconds * 1000 };
}

/** For hooks. The sandbox of a pod on the node's network has no address of its own. */
export function podIPs(
  { node }: KillDependencies,
  { pod }: KillTarget,
  sandboxes: readonly SandboxStatus[],
): readonly string[] {
  return pod?.spec.hostNetwork === true ? node.hostIPs : sandboxes.flatMap(({ ips }) => ips);
}

/** Begins the hook, unless it has begun before, and waits for its end as long as the grace lasts. */
async function preStop(deps: KillDependencies, kill: Kill, container: ToldContainer): Promise<void> {
  const { target, cause, signal } = kill;
  if (kill.graceSeconds <= 0) return;
  const { preStop: handler, ports } = await hookOf(deps, target.pod, container, signal);
  if (handler === undefined) return;
  const hide = hideSecrets(deps.objects, target.pod);
  const subject = { pod: target.ref, name: container.name, id: container.id, ports, ips: target.ips, hide };
  const ended = deps.preStops.once(container.id, (life) => runPreStop(deps, subject, handler, cause, life));
  if (await untilGraceEnds(deps, kill, `preStop hook of container ${container.name}`, ended)) return;
  deps.journal.record({
    kind: "observation",
    what: "PreStopHookOverdue",
    message: `the preStop hook of container ${container.name} has not ended within the grace`,
    pod: target.ref,
    container: container.name,
    cause,
  });
}

async function hookOf(
  deps: KillDependencies,
  pod: Pod | undefined,
  { id, name }: ToldContainer,
  signal: AbortSignal,
): Promise<StoredHook> {
  const spec = pod && allContainers(pod.spec).find((container) => container.name === name);
  if (spec !== undefined) return { preStop: spec.lifecycle?.preStop, ports: spec.ports ?? [] };
  try {
    const { status } = await deps.cri.runtime.containerStatus({ containerId: id }, { signal });
    return storedHook(status?.annotations ?? {});
  } catch (error) {
    signal.throwIfAborted();
    // A container that can't be looked at has to stop all the same.
    deps.log.warn("the preStop hook of a container is not known", { container: name, error: errorMessage(error) });
    return storedHook({});
  }
}

/** Waits for `work`, but not longer than the grace: false when that was over first. @throws the signal's reason */
async function untilGraceEnds(
  { clock }: KillDependencies,
  { killAtMs, signal }: Kill,
  what: string,
  work: Promise<void>,
): Promise<boolean> {
  const leftMs = Math.max(0, killAtMs - clock.monotonic());
  try {
    await withDeadline(clock, what, leftMs, signal, () => work);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof DeadlineError) return false;
    throw error;
  }
}

async function stop(deps: KillDependencies, kill: Kill, container: ToldContainer): Promise<void> {
  const { target, cause, signal } = kill;
  const timeoutSeconds = stopTimeoutSeconds(kill.killAtMs, deps.clock.monotonic());
  const action: ActionInput = {
    what: "StopContainer",
    message: `stop container ${container.name} (${shortId(container.id)}), grace ${timeoutSeconds} s`,
    pod: target.ref,
    container: container.name,
    cause,
    data: { id: container.id, graceSeconds: timeoutSeconds },
  };
  signal.throwIfAborted();
  deps.preStops.signalled(container.id);
  await perform(deps.journal, deps.clock, action, () =>
    ignoreNotFound(
      deps.cri.runtime.stopContainer({ containerId: container.id, timeout: BigInt(timeoutSeconds) }, { signal }),
    ),
  );
  deps.preStops.stopped(container.id);
}

async function stopSandbox(
  deps: KillDependencies,
  pod: PodRef,
  sandbox: SandboxStatus,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  await inTeardown(deps, "first", signal, async (queuedMs) => {
    const action: ActionInput = {
      what: "StopPodSandbox",
      message: `stop sandbox ${shortId(sandbox.id)}`,
      pod,
      cause,
      data: { id: sandbox.id, queuedMs },
    };
    await perform(deps.journal, deps.clock, action, () =>
      ignoreNotFound(deps.cri.runtime.stopPodSandbox({ podSandboxId: sandbox.id }, { signal })),
    );
  });
}
