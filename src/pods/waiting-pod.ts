import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { WorkerView } from "./worker-dependencies.ts";

/** A worker that has taken no step yet has nothing to tell beside the pod. */
export function firstView(of: Pick<WorkerView, "ref" | "pod" | "state" | "status">): WorkerView {
  return { ...of, starting: new Set(), waiting: new Map(), tried: new Set(), terminationMessages: new Map() };
}

/** How a pod shows that is wanted and has no worker yet: the runtime has to be listed first, or others have to stop. */
export function waitingView(pod: Pod): WorkerView {
  const ref = podRef(pod);
  const { namespace, name, uid } = ref;
  const status = { uid: podUid(uid), namespace, name, sandboxes: [], containers: [] };
  return firstView({ ref, pod, state: { kind: "syncing" }, status });
}
