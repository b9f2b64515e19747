import type { KnownPod } from "../../kubelet/known-pods.ts";
import type { Ending } from "../../pods/ending.ts";

/** Why a pod is being stopped for good, or has stopped; undefined: it should run. */
export function endingOf({ view: { state } }: KnownPod): Ending | undefined {
  return state.kind === "terminating" || state.kind === "terminated" ? state.ending : undefined;
}
