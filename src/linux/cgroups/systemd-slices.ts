import { ExitCode, errorMessage, PodwrightError } from "../../base/errors.ts";
import type { CgroupResources, Cgroups, CgroupState, EmptyRemoval } from "../../ports/cgroups.ts";
import { FileError } from "../../ports/files.ts";
import type { Processes } from "../../ports/processes.ts";
import { cpuWeight } from "./cgroups-v2.ts";

const manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"] as const;
const callLimitMs = 20_000;
/** D-Bus' unsigned 64-bit value for "no limit". */
const infinity = 2n ** 64n - 1n;
/** systemd rounds quotas to multiples of this many microseconds per second. */
const quotaStep = 10_000;

/** One property of a unit: its name, its type in D-Bus' notation and its value. */
type Property = readonly [name: string, type: "b" | "s" | "t", value: string];

/**
 * Cgroups of a machine on which systemd is process 1. Slices (paths that end in `.slice`) are systemd units. systemd
 * rewrites the limits that it knows whenever it starts something in a slice or reloads its configuration, and resets
 * those that it does not know. So limits are set through systemd, and the files are written as well, as upstream does:
 * some values are finer there. All other cgroups go to the plain tree. (https://systemd.io/CGROUP_DELEGATION,
 * org.freedesktop.systemd1(5))
 */
export class SystemdSlices implements Cgroups {
  readonly version: 1 | 2;
  readonly #tree: Cgroups;
  readonly #processes: Pick<Processes, "run">;

  constructor(tree: Cgroups, processes: Pick<Processes, "run">) {
    this.version = tree.version;
    this.#tree = tree;
    this.#processes = processes;
  }

  async exists(path: string): Promise<boolean> {
    return this.#tree.exists(path);
  }

  async missing(path: string): Promise<string[]> {
    return this.#tree.missing(path);
  }

  /** @throws PodwrightError (environment) when systemd is unreachable or refuses */
  async apply(path: string, resources: CgroupResources): Promise<void> {
    const slice = sliceOf(path);
    if (slice !== undefined) await this.#tell(slice, sliceProperties(resources, this.version));
    await this.#tree.apply(path, resources);
  }

  async read(path: string): Promise<CgroupState> {
    return this.#tree.read(path);
  }

  async children(path: string): Promise<string[]> {
    return this.#tree.children(path);
  }

  async pids(path: string): Promise<number[]> {
    return this.#tree.pids(path);
  }

  async ownPids(path: string): Promise<number[]> {
    return this.#tree.ownPids(path);
  }

  /**
   * As upstream, without systemd's knowledge: processes that it starts again are in the cgroup of its own
   * configuration.
   */
  async move(pids: readonly number[], path: string): Promise<ReadonlyMap<number, unknown>> {
    return await this.#tree.move(pids, path);
  }

  /** A slice is removed only through systemd. */
  async removeEmpty(path: string): Promise<EmptyRemoval> {
    if (sliceOf(path) === undefined) return await this.#tree.removeEmpty(path);
    return (await this.exists(path)) ? "refused" : "absent";
  }

  async remove(path: string): Promise<void> {
    const slice = sliceOf(path);
    if (slice !== undefined) {
      // Stopping a slice would kill its processes.
      const pids = await this.pids(path);
      if (pids.length > 0) throw new FileError("EBUSY", path, `EBUSY: processes ${pids.join(", ")} are in ${path}`);
      // Fails when systemd has no such unit; its cgroup may still be there.
      await this.#call("StopUnit", "ss", slice, "replace");
    }
    await this.#tree.remove(path);
  }

  /** Starts the slice, or changes a running one: a unit can be started only once. */
  async #tell(slice: string, resources: readonly Property[]): Promise<void> {
    const given: readonly Property[] = [...accounting, ...resources];
    const description: readonly Property[] = [
      ["Description", "s", `podwright's cgroup ${slice}`],
      ["DefaultDependencies", "b", "false"],
    ];
    const properties = words([...description, ...given]);
    const started = await this.#call("StartTransientUnit", "ssa(sv)a(sa(sv))", slice, "replace", ...properties, "0");
    if (started === undefined) return;
    const changed = await this.#call("SetUnitProperties", "sba(sv)", slice, "true", ...words(given));
    if (changed === undefined) return;
    throw new PodwrightError(
      ExitCode.environment,
      `systemd can neither create the slice ${slice} (${started}) nor change it (${changed})`,
      { remedy: "cgroup driver systemd requires systemd as process 1 and its D-Bus: try `busctl status`" },
    );
  }

  /** Undefined on success, otherwise the reason. */
  async #call(method: string, signature: string, ...arguments_: readonly string[]): Promise<string | undefined> {
    // Values may begin with a dash.
    const command = ["--quiet", "call", "--", ...manager, method, signature, ...arguments_];
    try {
      const { exitCode, stderr } = await this.#processes.run("busctl", command, { timeoutMs: callLimitMs });
      return exitCode === 0 ? undefined : stderr.trim() || `busctl ended with ${exitCode}`;
    } catch (error) {
      return errorMessage(error);
    }
  }
}

/** Without these systemd would not delegate the controllers to the slice. */
const accounting: readonly Property[] = ["CPUAccounting", "IOAccounting", "MemoryAccounting", "TasksAccounting"].map(
  (name) => [name, "b", "true"] as const,
);

/** The unit that a cgroup belongs to; undefined for cgroups other than slices. */
function sliceOf(path: string): string | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name.endsWith(".slice") ? name : undefined;
}

/** The limits as systemd's properties (systemd.resource-control(5)). Pure. */
export function sliceProperties(resources: CgroupResources, version: 1 | 2): Property[] {
  const { cpuShares, cpuQuotaMicroseconds: quota, cpuPeriodMicroseconds: period } = resources;
  const { memoryLimitBytes, memoryMinBytes, memoryLowBytes, pidsLimit } = resources;
  const limit = (value: number): string => `${value < 0 ? infinity : value}`;
  const properties: Property[] = [];
  if (cpuShares !== undefined) {
    properties.push(version === 2 ? ["CPUWeight", "t", `${cpuWeight(cpuShares)}`] : ["CPUShares", "t", `${cpuShares}`]);
  }
  if (period !== undefined) properties.push(["CPUQuotaPeriodUSec", "t", `${period}`]);
  if (quota !== undefined) properties.push(["CPUQuotaPerSecUSec", "t", quotaPerSecond(quota, period ?? 100_000)]);
  if (memoryLimitBytes !== undefined) {
    properties.push([version === 2 ? "MemoryMax" : "MemoryLimit", "t", limit(memoryLimitBytes)]);
  }
  if (version === 2 && memoryMinBytes !== undefined) properties.push(["MemoryMin", "t", `${memoryMinBytes}`]);
  if (version === 2 && memoryLowBytes !== undefined) properties.push(["MemoryLow", "t", `${memoryLowBytes}`]);
  if (pidsLimit !== undefined) properties.push(["TasksMax", "t", limit(pidsLimit)]);
  return properties;
}

/** Rounded up, so that it is never below the finer value of the file. */
function quotaPerSecond(quota: number, period: number): string {
  if (quota < 0) return `${infinity}`;
  return `${Math.ceil((quota * 1_000_000) / period / quotaStep) * quotaStep}`;
}

/** A property array in busctl's syntax. */
function words(properties: readonly Property[]): string[] {
  return [`${properties.length}`, ...properties.flat()];
}
