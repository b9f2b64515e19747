import { allContainers } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import { appArmorSpec } from "../runtime/config/security-context.ts";
import type { Rejection } from "./rejection.ts";
import { type SysctlAllowlist, sysctlProblem } from "./sysctl-allowlist.ts";

/** The facts of this node that decide whether a pod can run on it. */
export interface NodeAdmission {
  readonly sysctls: SysctlAllowlist;
  /** AppArmor is enabled in the kernel. */
  readonly appArmor: boolean;
  /** The runtime supports supplementalGroupsPolicy (KEP-3619). */
  readonly supplementalGroupsPolicy: boolean;
}

type Labels = Readonly<Record<string, string>>;
const osLabel = "kubernetes.io/os";

/**
 * Rejects a pod whose security settings this node cannot enforce, or that is for another OS: it must not run with less
 * than it requires. Reasons and messages are upstream's, with a remedy appended. Pure.
 * @param labels the node's; undefined: standalone
 */
export function admitBySecurity(pod: Pod, node: NodeAdmission, labels?: Labels): Rejection | undefined {
  const sysctl = sysctlProblem(node.sysctls, pod.spec);
  if (sysctl !== undefined) return { reason: "SysctlForbidden", message: sysctl };
  const os = pod.metadata.labels?.[osLabel];
  // Whatever the node's label says, this is Linux.
  if (labels !== undefined && os !== undefined && os !== "linux") {
    const message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
    return { reason: "PodOSSelectorNodeLabelDoesNotMatch", message };
  }
  if (pod.spec.os !== undefined && pod.spec.os.name !== "linux") {
    return { reason: "PodOSNotSupported", message: "Failed to admit pod as the OS field doesn't match node OS" };
  }
  if (pod.spec.securityContext?.supplementalGroupsPolicy === "Strict" && !node.supplementalGroupsPolicy) {
    const message = "SupplementalGroupsPolicy=Strict is not supported in this node: its container runtime lacks it";
    return { reason: "SupplementalGroupsPolicyNotSupported", message };
  }
  return undefined;
}

/** Rejects a pod whose AppArmor profiles this node cannot enforce, like {@link admitBySecurity}. Pure. */
export function admitByProfile(pod: Pod, node: NodeAdmission): Rejection | undefined {
  const refuse = (problem: string): Rejection => ({
    reason: "AppArmor",
    message: `Cannot enforce AppArmor: ${problem}`,
  });
  for (const container of allContainers(pod.spec)) {
    const profile = appArmorSpec(pod, container);
    if (profile === undefined || profile.type === "Unconfined") continue;
    if (!node.appArmor) return refuse("AppArmor is not enabled on the host");
    if (profile.type === "Localhost" && (profile.localhostProfile ?? "").trim() === "") {
      return refuse(`invalid empty AppArmor profile name of ${container.name}`);
    }
  }
  return undefined;
}

/**
 * Rejects a pod that uses what this version does not support; the reason is upstream's for undeclared features. Pure.
 */
export function admitSupported(unsupported: string): Rejection | undefined {
  return unsupported === "" ? undefined : { reason: "PodFeatureUnsupported", message: unsupported };
}
