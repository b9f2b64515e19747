import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { Recorder } from "../journal/entry.ts";
import type { CgroupResources, Cgroups } from "../ports/cgroups.ts";
import type { Logger } from "../ports/log.ts";
import {
  type CgroupDriver,
  type CgroupName,
  cgroupPath,
  parseCgroupfsPath,
  parseSystemdName,
} from "../resources/cgroup-names.ts";
import { milliCpuToShares } from "../resources/cpu.ts";
import { parseList } from "../resources/pod-totals.ts";

/** A cgroup that is limited to its reservation. */
export interface ReservedCgroup {
  readonly kind: "System" | "Kube";
  /** systemReservedCgroup or kubeReservedCgroup. */
  readonly cgroup: string;
  /** systemReserved or kubeReserved. */
  readonly reserved: Readonly<Record<string, string>>;
  /** Only its CPU weight is set. */
  readonly onlyCompressible: boolean;
}

export interface ReservedCgroupsConfig {
  readonly cgroups: readonly ReservedCgroup[];
  readonly driver: CgroupDriver;
  /** The cgroup of all pods; undefined: there is none. */
  readonly kubepods: string | undefined;
  /** Whether its memory is protected: feature gate MemoryQoS on cgroup v2. */
  readonly protectsMemory: boolean;
}

export interface ReservedCgroupsDependencies {
  readonly cgroups: Pick<Cgroups, "version" | "missing" | "read" | "apply">;
  readonly journal: Recorder;
  readonly log: Logger;
}

/** The limits of a reserved cgroup; undefined: no reservation. Pure. */
export function reservedLimits(
  { reserved, onlyCompressible }: ReservedCgroup,
  protectsMemory: boolean,
): CgroupResources | undefined {
  if (Object.keys(reserved).length === 0) return undefined;
  const list = parseList(reserved);
  const [cpu, memory, pids] = [list.get("cpu"), list.get("memory"), list.get("pid")];
  // Nothing reserved limits nothing: a limit of 0 would stop everything in the cgroup.
  const memoryBytes = memory && (Number(memory.value()) || undefined);
  const pidsLimit = pids && (Number(pids.value()) || undefined);
  return {
    ...(cpu && { cpuShares: Number(milliCpuToShares(cpu.milliValue())) }),
    ...(!onlyCompressible && {
      ...(memoryBytes !== undefined && { memoryLimitBytes: memoryBytes }),
      ...(memoryBytes !== undefined && protectsMemory && { memoryMinBytes: memoryBytes }),
      ...(pidsLimit !== undefined && { pidsLimit }),
    }),
  };
}

/**
 * Limits the system's and the kubelet's cgroups to their reservations (upstream: enforceNodeAllocatableCgroups).
 * @throws PodwrightError (environment) if one is missing, lacks a controller, or refuses a limit
 */
export async function limitReservedCgroups(
  deps: ReservedCgroupsDependencies,
  { cgroups, driver, kubepods, protectsMemory }: ReservedCgroupsConfig,
): Promise<void> {
  const { journal } = deps;
  // The root has all controllers for its children with this one: systemd enables only those that its own units need.
  if (cgroups.length > 0 && kubepods !== undefined) await deps.cgroups.apply(kubepods, {}).catch(() => {});
  for (const each of cgroups) {
    try {
      await limitOne(deps, nameOf(each.cgroup, driver), driver, reservedLimits(each, protectsMemory));
    } catch (error) {
      const limits = `${each.kind} Reserved ${each.onlyCompressible ? "Compressible " : ""}Cgroup Limits`;
      const message = `Failed to enforce ${limits} on ${JSON.stringify(each.cgroup)}: ${errorMessage(error)}`;
      journal.record({ kind: "note", what: "FailedNodeAllocatableEnforcement", message });
      throw new PodwrightError(ExitCode.environment, message, { cause: error, remedy: remedyFor(each) });
    }
    const message = `Updated limits on ${each.kind.toLowerCase()} reserved cgroup ${each.cgroup}`;
    journal.record({ kind: "note", what: "NodeAllocatableEnforced", message });
  }
}

async function limitOne(
  { cgroups, log }: ReservedCgroupsDependencies,
  name: CgroupName,
  driver: CgroupDriver,
  limits: CgroupResources | undefined,
): Promise<void> {
  const shown = `[${name.map((part) => JSON.stringify(part)).join(" ")}]`;
  if (limits === undefined) throw new Error(`${shown} cgroup is not configured properly`);
  const path = cgroupPath(name, driver);
  const missing = await cgroups.missing(path).catch((error: unknown) => {
    throw new Error(`could not read controllers for cgroup ${shown}: ${errorMessage(error)}`, { cause: error });
  });
  if (missing.length > 0) {
    const what = cgroups.version === 1 ? "missing paths" : "missing controllers";
    throw new Error(`cgroup ${shown} has some ${what}: ${missing.join(", ")}`);
  }
  const { memoryLimitBytes } = limits;
  if (memoryLimitBytes !== undefined) {
    const { memoryUsageBytes: usedBytes } = await cgroups.read(path);
    if (usedBytes > memoryLimitBytes) {
      log.warn("memory limit of a cgroup is below its usage", { path, memoryLimitBytes, usedBytes });
    }
  }
  await cgroups.apply(path, limits);
}

function nameOf(cgroup: string, driver: CgroupDriver): CgroupName {
  return driver === "systemd" ? parseSystemdName(cgroup) : parseCgroupfsPath(cgroup);
}

function remedyFor({ kind, cgroup, reserved, onlyCompressible }: ReservedCgroup): string {
  const name = kind.toLowerCase();
  const enforcement = `${name}-reserved${onlyCompressible ? "-compressible" : ""}`;
  const less = `remove ${enforcement} from enforceNodeAllocatable`;
  return Object.keys(reserved).length === 0
    ? `set ${name}Reserved, or ${less}`
    : `create ${cgroup} with all controllers before the kubelet starts, reserve more than it uses, or ${less}`;
}
