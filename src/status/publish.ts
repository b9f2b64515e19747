import type { Cause } from "../journal/entry.ts";
import type { WorkerView } from "../pods/worker-dependencies.ts";
import type { Clock } from "../ports/clock.ts";
import { generateAPIPodStatus } from "./generate.ts";
import type { StatusManager } from "./status-manager.ts";

/** Causes of termination by which the node itself ends or refuses a pod: its phase is Failed, with these as its reason. */
const nodeReasons: ReadonlySet<string> = new Set(["NodePorts", "DeadlineExceeded", "Evicted"]);

/** Makes the pod's API status from what its worker tells, and stores it. */
export function publishStatus(
  statuses: StatusManager,
  view: WorkerView,
  cause: Cause,
  node: { readonly clock: Clock; readonly runtimeName: string },
): void {
  const { pod, state } = view;
  if (pod === undefined) return;
  const ended = state.kind === "terminating" || state.kind === "terminated" ? state.cause : undefined;
  const failure =
    ended !== undefined && nodeReasons.has(ended.code) ? { reason: ended.code, message: ended.message } : undefined;
  const status = generateAPIPodStatus({
    pod,
    podStatus: view.status,
    waiting: view.waiting,
    previous: statuses.get(pod.metadata.uid),
    now: node.clock.now(),
    hostIPs: [],
    runtimeName: node.runtimeName,
    podIsTerminal: ended !== undefined,
    ...(failure === undefined ? {} : { failure }),
    terminationMessages: new Map(),
    probes: new Map(),
    recursiveReadOnlyMounts: false,
  });
  statuses.set(pod, status, cause);
}
