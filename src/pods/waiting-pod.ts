import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { WorkerView } from "./worker-dependencies.ts";

/** A worker that has taken no step yet adds nothing to the pod. */
export function firstView(of: Pick<WorkerView, "ref" | "pod" | "state" | "status">): WorkerView {
  const none = new Set<never>();
  return { ...of, starting: none, waiting: new Map(), tried: none, restarting: none, terminationMessages: new Map() };
}

/** The view of a desired pod without a worker: the first relist is pending, or others have to stop. */
export function waitingView(pod: Pod): WorkerView {
  const ref = podRef(pod);
  const { namespace, name, uid } = ref;
  const status = { uid: podUid(uid), namespace, name, sandboxes: [], containers: [] };
  return firstView({ ref, pod, state: { kind: "syncing" }, status });
}
