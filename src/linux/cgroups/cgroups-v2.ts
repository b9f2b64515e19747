import { join } from "node:path";
import type { CgroupResources, Cgroups, CgroupState, EmptyRemoval } from "../../ports/cgroups.ts";
import type { Clock } from "../../ports/clock.ts";
import { FileError } from "../../ports/files.ts";
import {
  addPids,
  cgroupExists,
  fileExists,
  cgroupParts,
  changeableParts,
  childCgroups,
  makeCgroup,
  ownPids,
  readValue,
  removeCgroup,
  removeEmptyCgroup,
  moveEach,
  writeValue,
} from "./cgroup-tree.ts";
import { errnoOf } from "../file-error.ts";

/** The controllers that limit and measure pods and containers. */
const neededControllers: readonly string[] = ["cpu", "cpuset", "hugetlb", "io", "memory", "pids"];

/** Controllers that a kubelet's cgroup must have, as upstream, if the machine has them. */
const limitingControllers: readonly string[] = ["cpu", "cpuset", "hugetlb", "memory", "pids"];

/** `cpu.weight` (1..10000) for v1's shares (2..262144): KEP-2254's formula in integers. */
export function cpuWeight(cpuShares: number): number {
  const shares = Math.min(Math.max(Math.trunc(cpuShares), 2), 262_144);
  return 1 + Math.trunc(((shares - 2) * 9_999) / 262_142);
}

/** The shares of a weight, as close as integers allow. */
export function sharesOfWeight(weight: number): number {
  return 2 + Math.ceil(((weight - 1) * 262_142) / 9_999);
}

/** Cgroups v2: one tree, in which each cgroup enables controllers for its children (`cgroup.subtree_control`). */
export class CgroupsV2 implements Cgroups {
  readonly version = 2;
  readonly #clock: Clock;
  readonly #root: string;

  constructor(clock: Clock, root: string) {
    this.#clock = clock;
    this.#root = root;
  }

  async exists(path: string): Promise<boolean> {
    return cgroupExists(this.#directory(path));
  }

  async missing(path: string): Promise<string[]> {
    const [offered, enabled] = await Promise.all(
      [this.#root, this.#directory(path)].map((directory) => words(join(directory, "cgroup.controllers"))),
    );
    return limitingControllers.filter((name) => offered?.includes(name) === true && enabled?.includes(name) !== true);
  }

  async apply(path: string, resources: CgroupResources): Promise<void> {
    const directory = await this.#make(changeableParts(path));
    const { cpuShares, memoryLimitBytes, memoryMinBytes, memoryLowBytes, pidsLimit } = resources;
    if (cpuShares !== undefined) await setValue(directory, "cpu.weight", `${cpuWeight(cpuShares)}`);
    await setCpuLimit(directory, resources);
    if (memoryLimitBytes !== undefined) await setValue(directory, "memory.max", limit(memoryLimitBytes));
    if (memoryMinBytes !== undefined) await setValue(directory, "memory.min", `${memoryMinBytes}`);
    if (memoryLowBytes !== undefined) await setValue(directory, "memory.low", `${memoryLowBytes}`);
    if (pidsLimit !== undefined) await setValue(directory, "pids.max", limit(pidsLimit));
    await setHugePages(directory, resources);
  }

  async read(path: string): Promise<CgroupState> {
    const directory = this.#directory(path);
    const value = async (file: string): Promise<string[]> => words(join(directory, file));
    const [[weight], [quota, period], [max], [current]] = await Promise.all([
      value("cpu.weight"),
      value("cpu.max"),
      value("memory.max"),
      value("memory.current"),
    ]);
    const number = (text: string | undefined): number => (text === "max" ? -1 : Number(text));
    return {
      resources: {
        cpuShares: sharesOfWeight(number(weight)),
        cpuQuotaMicroseconds: number(quota),
        cpuPeriodMicroseconds: number(period),
        memoryLimitBytes: number(max),
      },
      memoryUsageBytes: number(current),
    };
  }

  async children(path: string): Promise<string[]> {
    return childCgroups(this.#directory(path));
  }

  async pids(path: string): Promise<number[]> {
    const pids = new Set<number>();
    await addPids(this.#directory(path), pids);
    return [...pids];
  }

  async ownPids(path: string): Promise<number[]> {
    return await ownPids(this.#directory(path));
  }

  async move(pids: readonly number[], path: string): Promise<ReadonlyMap<number, unknown>> {
    const directory = await this.#make(cgroupParts(path));
    return await moveEach(pids, [directory]);
  }

  async removeEmpty(path: string): Promise<EmptyRemoval> {
    return await removeEmptyCgroup(join(this.#root, ...changeableParts(path)));
  }

  async remove(path: string): Promise<void> {
    await removeCgroup(this.#clock, join(this.#root, ...changeableParts(path)));
  }

  async #make(parts: readonly string[]): Promise<string> {
    const offered = await words(join(this.#root, "cgroup.controllers"));
    const controllers = neededControllers.filter((controller) => offered.includes(controller));
    let directory = this.#root;
    for (const part of parts) {
      await enableForChildren(directory, controllers);
      directory = join(directory, part);
      await makeCgroup(directory);
    }
    return directory;
  }

  #directory(path: string): string {
    return join(this.#root, ...cgroupParts(path));
  }
}

function limit(value: number): string {
  return value < 0 ? "max" : `${value}`;
}

/**
 * As runc: pages in use, and pages reserved by a mapping, which fails then rather than ending its process later (kernel
 * 5.7). Without the controller or the page size these files do not exist, and the pages are unlimited.
 */
async function setHugePages(directory: string, { hugePageLimitBytes = {} }: CgroupResources): Promise<void> {
  for (const [size, bytes] of Object.entries(hugePageLimitBytes)) {
    for (const name of [`hugetlb.${size}.max`, `hugetlb.${size}.rsvd.max`]) {
      const file = join(directory, name);
      if (await fileExists(file)) await writeValue(file, `${bytes}`);
    }
  }
}

/** `cpu.max` contains both quota and period; an omitted one stays unchanged. */
async function setCpuLimit(directory: string, resources: CgroupResources): Promise<void> {
  const { cpuQuotaMicroseconds: quota, cpuPeriodMicroseconds: period } = resources;
  if (quota === undefined && period === undefined) return;
  const quotaText = quota === undefined ? (await words(join(directory, "cpu.max")))[0] : limit(quota);
  await setValue(directory, "cpu.max", period === undefined ? `${quotaText}` : `${quotaText} ${period}`);
}

/**
 * Enables the controllers in one write, or, if the kernel refuses that, one by one: a controller that cannot be enabled
 * fails only when one of its values is set.
 */
async function enableForChildren(directory: string, controllers: readonly string[]): Promise<void> {
  const file = join(directory, "cgroup.subtree_control");
  const enabled = await words(file);
  const missing = controllers.filter((controller) => !enabled.includes(controller));
  if (missing.length === 0) return;
  const request = (names: readonly string[]): Promise<void> =>
    writeValue(file, names.map((name) => `+${name}`).join(" "));
  try {
    await request(missing);
  } catch {
    await Promise.allSettled(missing.map((name) => request([name])));
  }
}

async function setValue(directory: string, name: string, value: string): Promise<void> {
  try {
    await writeValue(join(directory, name), value);
  } catch (error) {
    // The file is missing, and the kernel permits creating none in its tree.
    const code = errnoOf(error) ?? "UNKNOWN";
    if (!["ENOENT", "EACCES", "EPERM"].includes(code)) throw error;
    const controller = name.split(".")[0];
    const message = `${code}: cannot set ${name} of '${directory}': is the ${controller} controller enabled there?`;
    throw new FileError(code, join(directory, name), message, { cause: error });
  }
}

async function words(file: string): Promise<string[]> {
  return (await readValue(file)).split(/\s+/).filter((word) => word !== "");
}
