import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { NodeSetupSettings } from "../node-setup/node-setup.ts";
import type { ReservedCgroup } from "../node-setup/reserved-cgroups.ts";
import type { MemoryQos } from "../resources/memory-qos.ts";
import type { KubeletConfiguration } from "./defaults.ts";
import { featureGates } from "./feature-gates.ts";

/**
 * Expects a valid configuration.
 * @throws PodwrightError (bad input) for an unusable cgroup
 */
export function nodeSetupSettings(configuration: KubeletConfiguration): NodeSetupSettings {
  const { protectKernelDefaults = false, systemCgroups = "", kubeletCgroups = "" } = configuration;
  return {
    protectsKernelDefaults: protectKernelDefaults,
    toleratesUserNamespace: featureGates(configuration.featureGates).enabled("KubeletInUserNamespace"),
    reservedCgroups: reservedCgroups(configuration),
    systemCgroups: systemCgroups === "" ? "" : belowRoot(plainPath("systemCgroups (--system-cgroups)", systemCgroups)),
    kubeletCgroups: kubeletCgroups === "" ? "" : plainPath("kubeletCgroups (--kubelet-cgroups)", kubeletCgroups),
  };
}

/** In upstream's order. A valid configuration has a cgroup for each. */
function reservedCgroups(configuration: KubeletConfiguration): ReservedCgroup[] {
  const { systemReservedCgroup = "", kubeReservedCgroup = "", systemReserved = {}, kubeReserved = {} } = configuration;
  const system = { kind: "System", cgroup: systemReservedCgroup, reserved: systemReserved } as const;
  const kube = { kind: "Kube", cgroup: kubeReservedCgroup, reserved: kubeReserved } as const;
  const all = [
    ["system-reserved", { ...system, onlyCompressible: false }],
    ["kube-reserved", { ...kube, onlyCompressible: false }],
    ["system-reserved-compressible", { ...system, onlyCompressible: true }],
    ["kube-reserved-compressible", { ...kube, onlyCompressible: true }],
  ] as const;
  return all.filter(([name]) => configuration.enforceNodeAllocatable.includes(name)).map(([, cgroup]) => cgroup);
}

/** Normalizes a cgroup path. @throws PodwrightError (bad input) if it contains `.` or `..` */
export function plainPath(field: string, path: string): string {
  const parts = path.split("/").filter((part) => part !== "");
  if (!parts.includes("..") && !parts.includes(".")) return `/${parts.join("/")}`;
  const problem = `${field} ${JSON.stringify(path)} must be a plain path`;
  throw new PodwrightError(ExitCode.badInput, `invalid configuration: ${problem}`);
}

function belowRoot(path: string): string {
  if (path !== "/") return path;
  throw new PodwrightError(ExitCode.badInput, 'system container cannot be root ("/")', {
    remedy: "set systemCgroups to a cgroup below the root, like /system",
  });
}

/** Undefined without the feature gate. */
export function memoryQos(configuration: KubeletConfiguration): MemoryQos | undefined {
  const { featureGates: gates, memoryReservationPolicy, memoryThrottlingFactor } = configuration;
  if (!featureGates(gates).enabled("MemoryQoS")) return undefined;
  const policy = memoryReservationPolicy === "TieredReservation" ? memoryReservationPolicy : "None";
  return { policy, throttlingFactor: memoryThrottlingFactor };
}

/** The percentage of memory that qosReserved withholds from lower QoS classes; undefined: none, or the gate is off. */
export function qosReservedMemoryPercent(configuration: KubeletConfiguration): number | undefined {
  const text = configuration.qosReserved?.["memory"];
  if (text === undefined || !featureGates(configuration.featureGates).enabled("QOSReserved")) return undefined;
  return Number(text.replace(/%+$/u, ""));
}
