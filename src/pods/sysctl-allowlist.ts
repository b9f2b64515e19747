import type { PodSpec } from "../api/pod.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { normalizeSysctl, sysctlNamespace } from "../runtime/config/sysctls.ts";

/** Which sysctls pods may set: names and prefixes. */
export interface SysctlAllowlist {
  readonly names: ReadonlySet<string>;
  readonly prefixes: readonly string[];
}

/** Namespaced sysctls that affect no other pod, with the minimum kernel version. */
const safeSysctls: Readonly<Record<string, string>> = {
  "kernel.shm_rmid_forced": "0.0",
  "net.ipv4.ip_local_port_range": "0.0",
  "net.ipv4.tcp_syncookies": "0.0",
  "net.ipv4.ping_group_range": "0.0",
  "net.ipv4.ip_unprivileged_port_start": "0.0",
  "net.ipv4.ip_local_reserved_ports": "3.16",
  "net.ipv4.tcp_keepalive_time": "4.5",
  "net.ipv4.tcp_fin_timeout": "4.6",
  "net.ipv4.tcp_keepalive_intvl": "4.5",
  "net.ipv4.tcp_keepalive_probes": "4.5",
  "net.ipv4.tcp_rmem": "4.15",
  "net.ipv4.tcp_wmem": "4.15",
};

/**
 * The sysctls that pods may set on a kernel of this release (`6.8.0-45-generic`).
 * @param unsafe KubeletConfiguration's allowedUnsafeSysctls, from {@link checkSysctlPatterns}
 */
export function sysctlAllowlist(kernelRelease: string, unsafe: readonly string[]): SysctlAllowlist {
  const safe = Object.entries(safeSysctls).filter(([, since]) => isAtLeast(kernelRelease, since));
  const patterns = unsafe.map(normalizeSysctl);
  return {
    names: new Set([...safe.map(([name]) => name), ...patterns.filter((pattern) => !pattern.includes("*"))]),
    prefixes: patterns.filter((pattern) => pattern.includes("*")).map(prefixOf),
  };
}

const pattern = /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*(?:[a-z0-9][-_a-z0-9]*)?[a-z0-9*]$/u;

/**
 * The patterns of allowedUnsafeSysctls, each the name of a sysctl or a prefix and `*`.
 * @throws PodwrightError (bad input) for an invalid pattern, or one whose sysctls are not known to be namespaced: those
 *   would be set for the whole node
 */
export function checkSysctlPatterns(patterns: readonly string[]): readonly string[] {
  for (const text of patterns) {
    const field = "allowedUnsafeSysctls (--allowed-unsafe-sysctls)";
    const fail = (problem: string, remedy: string): PodwrightError => {
      const message = `invalid configuration: ${field}: ${JSON.stringify(text)} ${problem}`;
      return new PodwrightError(ExitCode.badInput, message, { remedy });
    };
    if (text.length > 253 || !pattern.test(text)) {
      const remedy = "use names like net.core.somaxconn or prefixes like kernel.msg*";
      throw fail("is neither the name of a sysctl nor a prefix with *", remedy);
    }
    if (sysctlNamespace(prefixOf(normalizeSysctl(text))) === undefined) {
      throw fail("is not known to be namespaced", "remove it: it applies to the whole node; set it in /etc/sysctl.d");
    }
  }
  return patterns;
}

/** Why a pod may not set its sysctls, in upstream's words, with a remedy appended; undefined when it may. */
export function sysctlProblem({ names, prefixes }: SysctlAllowlist, spec: PodSpec): string | undefined {
  for (const sysctl of spec.securityContext?.sysctls ?? []) {
    const name = normalizeSysctl(sysctl.name);
    const allowed = names.has(name) ? name : prefixes.find((prefix) => name.startsWith(prefix));
    if (allowed === undefined) {
      const remedy =
        sysctlNamespace(name) === undefined
          ? "it applies to the whole node, not to a pod: set it in the node's /etc/sysctl.d, or by a privileged DaemonSet or init container"
          : "only podwright kubelet allows it, by allowedUnsafeSysctls of its KubeletConfiguration";
      return `forbidden sysctl: "${name}" not allowlisted (${remedy})`;
    }
    const namespace = sysctlNamespace(allowed);
    if ((namespace === "Net" && spec.hostNetwork === true) || (namespace === "IPC" && spec.hostIPC === true)) {
      return `forbidden sysctl: "${name}" not allowed with host ${namespace} enabled`;
    }
  }
  return undefined;
}

function prefixOf(text: string): string {
  return text.split("*")[0] ?? "";
}

function isAtLeast(release: string, wanted: string): boolean {
  const numbers = (text: string): number[] => /^\d+\.\d+/u.exec(text)?.[0].split(".").map(Number) ?? [0, 0];
  const [[major = 0, minor = 0], [wantedMajor = 0, wantedMinor = 0]] = [numbers(release), numbers(wanted)];
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}
