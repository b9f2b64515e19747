import { isStaticPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { isV6 } from "../base/ip.ts";
import type { PodFeatures } from "../runtime/config/pod-features.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { withoutInstances } from "../pods/post-start-hooks.ts";
import type { WorkerView } from "../pods/worker-dependencies.ts";
import type { Clock } from "../ports/clock.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { generateAPIPodStatus, hasRegularInSandbox } from "./generate.ts";
import type { ProbeState } from "../prober/probe-state.ts";
import type { StatusManager } from "./status-manager.ts";
import { terminatedStatus } from "./transitions.ts";

/** Builds the pod's API status from its worker's view, and stores it. */
export function publishStatus(
  statuses: StatusManager,
  view: WorkerView,
  cause: Cause,
  node: {
    readonly clock: Clock;
    readonly journal: Recorder;
    readonly runtimeName: string;
    /** The pod's probe results, by container name. */
    readonly probes: (pod: Pod, status: PodStatus) => ReadonlyMap<string, ProbeState>;
    readonly features: (pod: Pod) => Pick<PodFeatures, "recursiveReadOnlyMounts">;
    /** The node's addresses, the primary one first; empty: omitted. */
    readonly hostIPs: readonly string[];
    /** The node is in no cluster. */
    readonly isAlone: boolean;
  },
): void {
  const { pod, state } = view;
  if (pod === undefined) return;
  const ending = state.kind === "terminating" || state.kind === "terminated" ? state.ending : undefined;
  const previous = statuses.get(pod.metadata.uid);
  const mismatch = familyMismatch(previous?.hostIP, node.hostIPs[0]);
  if (mismatch !== undefined) {
    node.journal.record({ kind: "note", what: "HostIPsIPFamilyMismatch", message: mismatch, pod: podRef(pod), cause });
  }
  const podStatus = withoutInstances(view.status, view.starting);
  const status = generateAPIPodStatus({
    pod,
    podStatus,
    isInitialized: hasRegularInSandbox(pod, view.status),
    waiting: view.waiting,
    tried: view.tried,
    restarting: ending === undefined ? view.restarting : new Set(),
    previous,
    now: node.clock.now(),
    // As upstream, where nobody keeps the status of such a pod over a restart. Its deadline counts from its first sight.
    startedAt: node.isAlone && isStaticPod(pod) ? undefined : view.startedAt,
    hostIPs: node.hostIPs,
    runtimeName: node.runtimeName,
    podIsTerminal: ending !== undefined,
    mayRun: state.kind === "syncing" || (state.kind === "terminating" && isUnderWay(view.status)),
    ...(ending !== undefined && ending.outcome !== "asContainers" && { failure: ending }),
    endedPhase: ending?.endedPhase,
    terminationMessages: view.terminationMessages,
    probes: node.probes(pod, podStatus),
    recursiveReadOnlyMounts: node.features(pod).recursiveReadOnlyMounts,
    resize: view.resize,
  });
  // Then containers that never ran wait no longer, and the pod ends. A rejected pod never started.
  const isOver = ending !== undefined && ending.outcome !== "refused" && !canRun(view.status);
  statuses.set(pod, isOver ? terminatedStatus(pod, status) : status, cause);
}

/** The Node's address has another family than a pod has reported: upstream's message. */
function familyMismatch(reported: string | undefined, now: string | undefined): string | undefined {
  if (reported === undefined || now === undefined || isV6(reported) === isV6(now)) return undefined;
  const shown = (address: string): string => `IPv${isV6(address) ? 6 : 4} node IP (${address})`;
  const advice = "pass an explicit `--node-ip` to kubelet to fix this.";
  return `Kubelet detected an ${shown(reported)}, but the cloud provider selected an ${shown(now)}; ${advice}`;
}

/** Whether a container runs, or was created and may start. */
function isUnderWay(status: PodStatus): boolean {
  return canRun(status) && status.containers.some(({ state }) => state !== "exited");
}

/** Whether anything of the pod runs or may start: without its sandbox nothing does. */
function canRun({ sandboxes, containers }: PodStatus): boolean {
  return (
    sandboxes.some(({ ready }) => ready) || containers.some(({ state }) => state === "running" || state === "unknown")
  );
}
