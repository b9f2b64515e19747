import { dirname, join } from "node:path";
import type { CgroupResources, Cgroups, CgroupState, EmptyRemoval } from "../../ports/cgroups.ts";
import type { Clock } from "../../ports/clock.ts";
import {
  addPids,
  cgroupExists,
  cgroupParts,
  changeableParts,
  childCgroups,
  fileExists,
  makeCgroup,
  ownPids,
  readValue,
  removeCgroup,
  removeEmptyCgroup,
  moveEach,
  writeValue,
} from "./cgroup-tree.ts";
import { errnoOf } from "../file-error.ts";

/** Hierarchies that a kubelet's cgroup must exist in, as upstream; hugetlb only if mounted. */
const neededControllers = ["cpu", "cpuacct", "cpuset", "memory", "name=systemd", "pids", "hugetlb"];
/** More memory than any machine has: a higher limit means unlimited. */
const unlimitedBytes = 2 ** 62;

/** One mounted cgroup v1 hierarchy. */
export interface Hierarchy {
  readonly directory: string;
  /**
   * The controllers mounted there, e.g. `cpu` and `cpuacct`; `name=systemd` for a named hierarchy without controllers.
   */
  readonly controllers: readonly string[];
}

/**
 * Cgroups v1: a logical path stands for the same path in every hierarchy.
 *
 * The v2 tree of a hybrid system (`unified`) has no controllers, so nothing is created there. Runtimes do create
 * cgroups in it, so it is inspected and cleaned up like the others.
 */
export class CgroupsV1 implements Cgroups {
  readonly version = 1;
  readonly #clock: Clock;
  readonly #hierarchies: readonly Hierarchy[];
  /** Roots that may contain a path: the hierarchies and the v2 tree of a hybrid system. */
  readonly #roots: readonly string[];

  constructor(clock: Clock, hierarchies: readonly Hierarchy[], unified?: string) {
    this.#clock = clock;
    this.#hierarchies = hierarchies;
    this.#roots = [...hierarchies.map(({ directory }) => directory), ...(unified === undefined ? [] : [unified])];
  }

  /** True when the path exists in every hierarchy; `apply` creates the missing ones. */
  async exists(path: string): Promise<boolean> {
    const parts = cgroupParts(path);
    const found = await Promise.all(this.#hierarchies.map(({ directory }) => cgroupExists(join(directory, ...parts))));
    return found.every(Boolean);
  }

  async missing(path: string): Promise<string[]> {
    const parts = cgroupParts(path);
    const needed = this.#hierarchies.filter(({ controllers }) =>
      neededControllers.some((controller) => controllers.includes(controller)),
    );
    const directories = needed.map(({ directory }) => join(directory, ...parts));
    const found = await Promise.all(directories.map(cgroupExists));
    return directories.filter((_, index) => found[index] !== true);
  }

  async apply(path: string, resources: CgroupResources): Promise<void> {
    await this.#make(changeableParts(path));
    const { cpuShares, memoryLimitBytes, pidsLimit } = resources;
    if (cpuShares !== undefined) await writeValue(this.#file(path, "cpu", "cpu.shares"), `${cpuShares}`);
    await this.#setCpuLimit(path, resources);
    if (pidsLimit !== undefined) {
      await writeValue(this.#file(path, "pids", "pids.max"), pidsLimit < 0 ? "max" : `${pidsLimit}`);
    }
    await this.#setHugePages(path, resources);
    // Last, as the kernel refuses it while more is in use.
    if (memoryLimitBytes === undefined) return;
    await writeValue(this.#file(path, "memory", "memory.limit_in_bytes"), `${memoryLimitBytes}`);
  }

  async read(path: string): Promise<CgroupState> {
    const value = async (controller: string, file: string): Promise<number> =>
      Number(await readValue(this.#file(path, controller, file)));
    const [cpuShares, cpuQuotaMicroseconds, cpuPeriodMicroseconds, limit, memoryUsageBytes] = await Promise.all([
      value("cpu", "cpu.shares"),
      value("cpu", "cpu.cfs_quota_us"),
      value("cpu", "cpu.cfs_period_us"),
      value("memory", "memory.limit_in_bytes"),
      value("memory", "memory.usage_in_bytes"),
    ]);
    // The kernel shows "no limit" as the largest number of whole pages.
    const memoryLimitBytes = limit >= unlimitedBytes ? -1 : limit;
    return {
      resources: { cpuShares, cpuQuotaMicroseconds, cpuPeriodMicroseconds, memoryLimitBytes },
      memoryUsageBytes,
    };
  }

  async children(path: string): Promise<string[]> {
    const parts = cgroupParts(path);
    const names = await Promise.all(this.#roots.map((root) => childCgroups(join(root, ...parts))));
    return [...new Set(names.flat())];
  }

  async pids(path: string): Promise<number[]> {
    const parts = cgroupParts(path);
    const pids = new Set<number>();
    // While the runtime moves a process, it may be in some hierarchies only.
    await Promise.all(this.#roots.map((root) => addPids(join(root, ...parts), pids)));
    return [...pids];
  }

  async ownPids(path: string): Promise<number[]> {
    return await ownPids(this.#file(path, "cpu", ""));
  }

  async move(pids: readonly number[], path: string): Promise<ReadonlyMap<number, unknown>> {
    const parts = cgroupParts(path);
    await this.#make(parts);
    return await moveEach(
      pids,
      this.#hierarchies.map(({ directory }) => join(directory, ...parts)),
    );
  }

  async removeEmpty(path: string): Promise<EmptyRemoval> {
    const parts = changeableParts(path);
    const outcomes = await Promise.all(this.#roots.map((root) => removeEmptyCgroup(join(root, ...parts))));
    return (
      outcomes.find((outcome) => outcome === "refused") ?? outcomes.find((outcome) => outcome === "removed") ?? "absent"
    );
  }

  async remove(path: string): Promise<void> {
    const parts = changeableParts(path);
    const outcomes = await Promise.allSettled(
      this.#roots.map((root) => removeCgroup(this.#clock, join(root, ...parts))),
    );
    const failure = outcomes.find((outcome) => outcome.status === "rejected");
    if (failure !== undefined) throw failure.reason;
  }

  async #make(parts: readonly string[]): Promise<void> {
    await Promise.all(
      this.#hierarchies.map(async (hierarchy) => {
        const directory = join(hierarchy.directory, ...parts);
        await makeWithParents(hierarchy.directory, directory);
        if (hierarchy.controllers.includes("cpuset")) await inheritCpuset(hierarchy.directory, directory);
      }),
    );
  }

  /** v1 often lacks this controller: then huge pages are unlimited. Kernels before 5.7 do not limit reserved ones. */
  async #setHugePages(path: string, { hugePageLimitBytes = {} }: CgroupResources): Promise<void> {
    if (!this.#hierarchies.some(({ controllers }) => controllers.includes("hugetlb"))) return;
    for (const [size, bytes] of Object.entries(hugePageLimitBytes)) {
      await writeValue(this.#file(path, "hugetlb", `hugetlb.${size}.limit_in_bytes`), `${bytes}`);
      const reserved = this.#file(path, "hugetlb", `hugetlb.${size}.rsvd.limit_in_bytes`);
      if (await fileExists(reserved)) await writeValue(reserved, `${bytes}`);
    }
  }

  async #setCpuLimit(path: string, resources: CgroupResources): Promise<void> {
    const { cpuQuotaMicroseconds: quota, cpuPeriodMicroseconds: period } = resources;
    const setQuota = async (): Promise<void> => {
      if (quota !== undefined) await writeValue(this.#file(path, "cpu", "cpu.cfs_quota_us"), `${quota}`);
    };
    const setPeriod = async (): Promise<void> => {
      if (period !== undefined) await writeValue(this.#file(path, "cpu", "cpu.cfs_period_us"), `${period}`);
    };
    try {
      await setPeriod();
    } catch (error) {
      // The kernel checks each write against the parent's share: the new period may fit only the new quota.
      if (errnoOf(error) !== "EINVAL" || quota === undefined) throw error;
      await setQuota();
      await setPeriod();
      return;
    }
    await setQuota();
  }

  #file(path: string, controller: string, name: string): string {
    const hierarchy = this.#hierarchies.find(({ controllers }) => controllers.includes(controller));
    if (hierarchy === undefined) throw new Error(`cgroup ${path}: the ${controller} controller is not mounted`);
    return join(hierarchy.directory, ...cgroupParts(path), name);
  }
}

async function makeWithParents(root: string, directory: string): Promise<void> {
  try {
    await makeCgroup(directory);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT" || directory === root) throw error;
    await makeWithParents(root, dirname(directory));
    await makeCgroup(directory);
  }
}

/**
 * A new cpuset has neither CPUs nor memory nodes, so no process can join it: copy its parent's. The parent may be new
 * as well (from a concurrent call), so it goes first.
 */
async function inheritCpuset(root: string, directory: string): Promise<void> {
  if (directory === root) return;
  const files = ["cpuset.cpus", "cpuset.mems"];
  const values = await Promise.all(files.map((file) => readValue(join(directory, file))));
  if (values.every((value) => value !== "")) return;
  await inheritCpuset(root, dirname(directory));
  for (const [index, file] of files.entries()) {
    if (values[index] !== "") continue;
    await writeValue(join(directory, file), await readValue(join(dirname(directory), file)));
  }
}
