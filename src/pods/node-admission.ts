import type { Pod } from "../api/pod.ts";
import { appArmorSpec } from "../runtime/security-context.ts";
import type { Rejection } from "./admission.ts";
import { type SysctlAllowlist, sysctlProblem } from "./sysctl-allowlist.ts";

/** What of this node decides whether it can run a pod as the pod asks for it. */
export interface NodeAdmission {
  readonly sysctls: SysctlAllowlist;
  /** The kernel has AppArmor, and it is on. */
  readonly appArmor: boolean;
  /** The runtime knows supplementalGroupsPolicy (KEP-3619). */
  readonly supplementalGroupsPolicy: boolean;
}

/** Reasons of {@link admitToNode}. */
export const nodeRejections = ["SysctlForbidden", "SupplementalGroupsPolicyNotSupported", "AppArmor"] as const;

/**
 * Refuses a pod whose security this node can't give: it must not run with less than it was written for. Reasons and
 * messages are upstream's, with the remedy behind. Pure.
 */
export function admitToNode(pod: Pod, node: NodeAdmission): Rejection | undefined {
  const refuse = (reason: (typeof nodeRejections)[number], message: string): Rejection => {
    return { reason, message: `Pod was rejected: ${message}` };
  };
  const sysctl = sysctlProblem(node.sysctls, pod.spec);
  if (sysctl !== undefined) return refuse("SysctlForbidden", `${sysctl} (KubeletConfiguration: allowedUnsafeSysctls)`);
  if (pod.spec.securityContext?.supplementalGroupsPolicy === "Strict" && !node.supplementalGroupsPolicy) {
    const message = "SupplementalGroupsPolicy=Strict is not supported in this node: its container runtime lacks it";
    return refuse("SupplementalGroupsPolicyNotSupported", message);
  }
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  for (const container of [...initContainers, ...containers, ...ephemeralContainers]) {
    const profile = appArmorSpec(pod, container);
    if (profile === undefined || profile.type === "Unconfined") continue;
    if (!node.appArmor) return refuse("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host");
    if (profile.type === "Localhost" && (profile.localhostProfile ?? "").trim() === "") {
      return refuse("AppArmor", `Cannot enforce AppArmor: invalid empty AppArmor profile name of ${container.name}`);
    }
  }
  return undefined;
}
