import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { outOfPrefix, unsupportedReason } from "../pods/admission.ts";
import { nodeRejections } from "../pods/node-admission.ts";
import type { WorkerView } from "../pods/worker-dependencies.ts";
import type { Clock } from "../ports/clock.ts";
import type { PodStatus } from "../runtime/pod-status.ts";
import { generateAPIPodStatus } from "./generate.ts";
import type { ProbeState } from "./inputs.ts";
import type { StatusManager } from "./status-manager.ts";

/** Causes of termination by which the node itself ends or refuses a pod: its phase is Failed, with these as its reason. */
const nodeReasons: ReadonlySet<string> = new Set([
  ...nodeRejections,
  unsupportedReason,
  "NodePorts",
  "DeadlineExceeded",
  "Evicted",
]);

function isNodeReason(code: string): boolean {
  return nodeReasons.has(code) || code.startsWith(outOfPrefix);
}

/** Makes the pod's API status from what its worker tells, and stores it. */
export function publishStatus(
  statuses: StatusManager,
  view: WorkerView,
  cause: Cause,
  node: {
    readonly clock: Clock;
    readonly runtimeName: string;
    /** What probes say of the pod's containers, by name. */
    readonly probes: (pod: Pod, status: PodStatus) => ReadonlyMap<string, ProbeState>;
    readonly recursiveReadOnlyMounts: boolean;
    /** The node's addresses, the primary one first; empty to say nothing of them. */
    readonly hostIPs: readonly string[];
  },
): void {
  const { pod, state } = view;
  if (pod === undefined) return;
  const ended = state.kind === "terminating" || state.kind === "terminated" ? state.cause : undefined;
  const failure =
    ended !== undefined && isNodeReason(ended.code) ? { reason: ended.code, message: ended.message } : undefined;
  const status = generateAPIPodStatus({
    pod,
    podStatus: view.status,
    waiting: view.waiting,
    previous: statuses.get(pod.metadata.uid),
    now: node.clock.now(),
    startedAt: view.startedAt,
    hostIPs: node.hostIPs,
    runtimeName: node.runtimeName,
    podIsTerminal: ended !== undefined,
    ...(failure === undefined ? {} : { failure }),
    terminationMessages: view.terminationMessages,
    probes: node.probes(pod, view.status),
    recursiveReadOnlyMounts: node.recursiveReadOnlyMounts,
    resize: view.resize,
  });
  statuses.set(pod, status, cause);
}
