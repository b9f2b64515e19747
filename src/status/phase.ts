import { isSidecar } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import { restartingAllContainers, restartsAfter } from "../api/restart-policy.ts";
import type { ContainerStatus, PodPhase } from "../api/status.ts";
import { containerStatusUnknown } from "./container-statuses.ts";

export interface PhaseInputs {
  /** Statuses of init and regular containers. */
  readonly statuses: readonly ContainerStatus[];
  readonly podIsTerminal: boolean;
  /** A regular container was created in the current sandbox, so initialization was complete in it. */
  readonly initialized: boolean;
  /** Containers that were stopped to be restarted, whatever their exit code. */
  readonly restarting?: ReadonlySet<string>;
}

export function isTerminalPhase(phase: PodPhase | undefined): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

/**
 * A pod's phase from its containers alone. A container that waits for its restart counts as exited; sidecars neither
 * keep a pod alive nor fail it.
 */
export function getPhase(pod: Pod, inputs: PhaseInputs): PodPhase {
  // An assumed kill says nothing: a pod whose containers never ran has not progressed.
  if (inputs.statuses.every(isUnbegun)) return "Pending";
  const { restarting = new Set() } = inputs;
  const situations = new Map(inputs.statuses.map((status) => [status.name, situationOf(status, restarting)]));
  const situation = (container: Container): Situation => situations.get(container.name) ?? unknownSituation;
  const initContainers = pod.spec.initContainers ?? [];
  const init = initContainers.filter((container) => !isSidecar(container));
  if (init.some((container) => hasFailedForGood(pod, container, situation(container)))) return "Failed";

  const sidecars = initContainers.filter(isSidecar).map(situation);
  const regular = pod.spec.containers.map(situation);
  const sidecarPending = sidecars.some(({ kind, started }) => kind !== "ended" && !started);
  const initPending = init.some((container) => situation(container).kind !== "ended");
  if (initPending || (sidecarPending && !inputs.initialized)) return "Pending";
  const all = [...sidecars, ...regular];
  if (all.some(({ kind }) => kind === "waiting")) return "Pending";
  if (all.some(({ kind }) => kind === "unknown")) return "Pending";
  if (all.some(({ kind }) => kind === "running")) return "Running";
  if (!regular.some(({ kind }) => kind === "ended")) return "Pending";
  return phaseOfEnded(pod, regular, inputs.podIsTerminal);
}

/** A container's state. `ended` includes those that wait for a restart. */
interface Situation {
  readonly kind: "running" | "ended" | "waiting" | "unknown";
  readonly started: boolean;
  readonly exitCode: number;
  /** Exited and not waiting for a restart. */
  readonly stopped: boolean;
  /** Stopped to be restarted, alone or with its pod: it runs again, whatever its policy says of its exit code. */
  readonly startsOver: boolean;
  /** It has never run. */
  readonly unbegun: boolean;
}

const unknownSituation: Situation = {
  kind: "unknown",
  started: false,
  exitCode: 0,
  stopped: false,
  startsOver: false,
  unbegun: false,
};

/** It waits for its first start, or was assumed killed when its pod had stopped without it. */
function isUnbegun({ state, lastState, restartCount }: ContainerStatus): boolean {
  if (restartCount > 0 || (state.waiting === undefined && state.terminated === undefined)) return false;
  const ends = [state.terminated, lastState.terminated].filter((end) => end !== undefined);
  return ends.every(({ reason }) => reason === containerStatusUnknown);
}

function situationOf(status: ContainerStatus, restarting: ReadonlySet<string>): Situation {
  const { name, state, lastState, started = false } = status;
  if (state.running) return { ...unknownSituation, kind: "running", started };
  const end = state.terminated ?? (state.waiting && lastState.terminated);
  if (end !== undefined) {
    const startsOver = end.reason === restartingAllContainers || restarting.has(name);
    const [stopped, unbegun] = [state.terminated !== undefined, isUnbegun(status)];
    return { kind: "ended", started, exitCode: end.exitCode, stopped, startsOver, unbegun };
  }
  return state.waiting ? { ...unknownSituation, kind: "waiting" } : unknownSituation;
}

function hasFailedForGood(pod: Pod, container: Container, { kind, exitCode, startsOver }: Situation): boolean {
  return kind === "ended" && exitCode !== 0 && !startsOver && !restartsAfter(pod, container, exitCode);
}

function phaseOfEnded(pod: Pod, regular: readonly Situation[], podIsTerminal: boolean): PodPhase {
  // A container that waits for its restart has not succeeded, whatever its last exit code.
  const succeeded = regular.every(({ exitCode, stopped }) => stopped && exitCode === 0);
  const outcome = succeeded ? "Succeeded" : "Failed";
  // A stopping static pod has not ended for the cluster: its manifest brings it back (upstream's rule).
  if (podIsTerminal && !isStaticPod(pod)) return outcome;
  const restarting = pod.spec.containers.some((container, index) => {
    const { exitCode, startsOver } = regular[index] ?? unknownSituation;
    return startsOver || restartsAfter(pod, container, exitCode);
  });
  if (!restarting) return outcome;
  return regular.some(({ unbegun }) => unbegun) ? "Pending" : "Running";
}
