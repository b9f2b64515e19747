import type { KubeletConfiguration } from "./defaults.ts";
import { featureGates } from "./feature-gates.ts";

/** The first kernel without livelocks at memory.high, as upstream. */
const [sureMajor, sureMinor] = [5, 9];

/**
 * Warnings for settings that have no effect or are risky on this machine. Pure.
 * @param kernelRelease output of `uname -r`
 */
export function machineWarnings(
  configuration: KubeletConfiguration,
  cgroupVersion: 1 | 2,
  kernelRelease: string,
): string[] {
  const { featureGates: settings, kubeReservedCgroup = "", kubeletCgroups = "", qosReserved = {} } = configuration;
  const gates = featureGates(settings);
  const warnings: string[] = [];
  if (gates.enabled("MemoryQoS")) {
    if (cgroupVersion === 1) warnings.push("MemoryQoS has no effect on cgroup v1");
    else if (isBefore(kernelRelease)) warnings.push("MemoryQoS may cause livelocks with kernels before 5.9");
  }
  if (Object.keys(qosReserved).length > 0 && !gates.enabled("QOSReserved")) {
    warnings.push("qosReserved has no effect without the feature gate QOSReserved");
  }
  if (kubeletCgroups !== "" && kubeReservedCgroup !== "" && !kubeletCgroups.startsWith(kubeReservedCgroup)) {
    warnings.push("kubeletCgroups is not within kubeReservedCgroup");
  }
  return warnings;
}

function isBefore(release: string): boolean {
  const [, major = "", minor = ""] = /^(\d+)\.(\d+)/u.exec(release) ?? [];
  return Number(major) < sureMajor || (Number(major) === sureMajor && Number(minor) < sureMinor);
}
