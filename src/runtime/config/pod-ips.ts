import type { Pod } from "../../api/pod.ts";
import type { NodeContext } from "../node-context.ts";

/** A pod's addresses, the primary one first. The sandbox of a hostNetwork pod has none of its own. */
export function podIPs(
  { hostIPs }: Pick<NodeContext, "hostIPs">,
  pod: Pod | undefined,
  sandboxIPs: readonly string[],
): readonly string[] {
  return pod?.spec.hostNetwork === true ? hostIPs : sandboxIPs;
}
