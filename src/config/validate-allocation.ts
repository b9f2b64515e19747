import { errorMessage } from "../base/errors.ts";
import { parseCpuList } from "../resources/cpu-list.ts";
import { readQuantity } from "../resources/quantity.ts";
import type { KubeletConfiguration } from "./defaults.ts";

const enforcements = [
  "pods",
  "system-reserved",
  "system-reserved-compressible",
  "kube-reserved",
  "kube-reserved-compressible",
];
const option = "enforceNodeAllocatable (--enforce-node-allocatable)";

/** Problems of reserved resources, without the prefix `invalid configuration: `. */
export function* validateAllocation(configuration: KubeletConfiguration): Iterable<string> {
  yield* enforcement(configuration);
  yield* reservedProcessors(configuration);
  for (const [field, resources] of Object.entries({
    systemReserved: configuration.systemReserved,
    kubeReserved: configuration.kubeReserved,
  })) {
    yield* reservation(field, resources ?? {});
  }
  yield* reservedMemory(configuration);
  yield* memoryOfClasses(configuration);
}

function* enforcement(configuration: KubeletConfiguration): Iterable<string> {
  const given = configuration.enforceNodeAllocatable;
  for (const kind of ["system-reserved", "kube-reserved"] as const) {
    if (given.includes(kind) && given.includes(`${kind}-compressible`)) {
      yield `both "${kind}" and "${kind}-compressible" cannot be specified together in ${option}`;
    }
  }
  for (const [index, value] of given.entries()) {
    if (given.indexOf(value) < index) {
      yield `duplicated enforcements ${JSON.stringify(value)} in ${option}`;
    } else if (value === "none") {
      if (given.length > 1) yield `${option} may not contain additional enforcements when "none" is specified`;
    } else if (enforcements.includes(value)) {
      yield* enforcedCgroup(configuration, value);
    } else {
      const valid = `${enforcements.map((each) => `"${each}"`).join(", ")} or "none"`;
      yield `option ${JSON.stringify(value)} specified for ${option}. Valid options are ${valid}`;
    }
  }
}

function* enforcedCgroup(configuration: KubeletConfiguration, value: string): Iterable<string> {
  const { systemReservedCgroup, kubeReservedCgroup, cgroupsPerQOS } = configuration;
  for (const [kind, cgroup, field] of [
    ["system-reserved", systemReservedCgroup, "systemReservedCgroup"],
    ["kube-reserved", kubeReservedCgroup, "kubeReservedCgroup"],
  ] as const) {
    if (!value.startsWith(kind) || cgroup) continue;
    yield `${field} (--${kind}-cgroup) must be specified when "${kind}" or "${kind}-compressible" included in ${option}`;
  }
  if (!cgroupsPerQOS) {
    yield `cgroupsPerQOS (--cgroups-per-qos) must be set to true when ${JSON.stringify(value)} contained in ${option}`;
  }
}

function* reservedProcessors(configuration: KubeletConfiguration): Iterable<string> {
  const { reservedSystemCPUs = "", systemReservedCgroup, kubeReservedCgroup } = configuration;
  if (reservedSystemCPUs === "") return;
  if (systemReservedCgroup || kubeReservedCgroup) {
    yield "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)";
  }
  try {
    parseCpuList(reservedSystemCPUs);
  } catch (error) {
    yield `unable to parse reservedSystemCPUs (--reserved-cpus) ${reservedSystemCPUs}, error: ${errorMessage(error)}`;
  }
}

const reservable = new Set(["cpu", "memory", "ephemeral-storage", "pid"]);

function* reservation(field: string, resources: Readonly<Record<string, string>>): Iterable<string> {
  for (const [resource, amount] of Object.entries(resources)) {
    if (!reservable.has(resource)) {
      yield `${field}: cannot reserve ${JSON.stringify(resource)} resource`;
      continue;
    }
    const nanos = readQuantity(amount)?.nanos;
    const what = `${JSON.stringify(resource)} resource`;
    if (nanos === undefined) {
      yield `${field}: failed to parse quantity ${JSON.stringify(amount)} for ${what}`;
    } else if (nanos < 0n) {
      yield `${field}: resource quantity for ${what} cannot be negative: ${amount}`;
    }
  }
}

function* reservedMemory(configuration: KubeletConfiguration): Iterable<string> {
  const seen = new Set<string>();
  for (const { numaNode, limits } of configuration.reservedMemory ?? []) {
    for (const [resource, amount] of Object.entries(limits)) {
      const where = `NUMA node ${numaNode} and resource ${JSON.stringify(resource)}`;
      if (resource !== "memory" && !resource.startsWith("hugepages-")) {
        yield `the limit type ${JSON.stringify(resource)} for NUMA node ${numaNode} is not supported, only [memory hugepages-<HugePageSize>] is accepted`;
      }
      if ((readQuantity(String(amount))?.nanos ?? 0n) === 0n) yield `reserved memory may not be zero for ${where}`;
      if (seen.has(where)) yield `the reserved memory has a duplicate value for ${where}`;
      seen.add(where);
    }
  }
}

function* memoryOfClasses({ qosReserved = {} }: KubeletConfiguration): Iterable<string> {
  const failed = "--qos-reserved value failed to parse";
  for (const [resource, amount] of Object.entries(qosReserved)) {
    const named = JSON.stringify(resource);
    const problem = percentageProblem(amount);
    if (resource !== "memory") yield `${failed}: cannot reserve ${named} resource`;
    else if (problem !== undefined) {
      yield `${failed}: failed to parse percentage ${JSON.stringify(amount)} for ${named} resource: ${problem}`;
    }
  }
}

function percentageProblem(text: string): string | undefined {
  if (!text.endsWith("%")) return `percentage expected, got '${text}'`;
  const digits = text.replace(/%+$/u, "");
  if (!/^[+-]?\d+$/u.test(digits)) return `invalid number in percentage '${text}'`;
  return Number(digits) < 0 || Number(digits) > 100 ? "percentage must be between 0 and 100" : undefined;
}
