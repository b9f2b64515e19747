import type { CgroupResources, Cgroups, CgroupState, EmptyRemoval } from "../ports/cgroups.ts";
import type { Logger } from "../ports/log.ts";
import type { LoopDevices } from "../ports/loop-devices.ts";
import type { MountPoint, Mounts } from "../ports/mounts.ts";
import type { SimContainer } from "./world-model.ts";
import type { Processes } from "../ports/processes.ts";

const usualBytes = 1 << 20;

/** The simulated machine's cgroup tree: paths with the values last applied. */
export class SimCgroups implements Cgroups {
  readonly version = 2;
  readonly applied = new Map<string, CgroupResources>();
  /** Bytes that cgroups use beyond the usual, by path. */
  readonly #used = new Map<string, number>();
  readonly #containers: () => Iterable<SimContainer>;

  /** @param containers of the runtime; each running one has a cgroup below its pod's */
  constructor(containers: () => Iterable<SimContainer> = () => []) {
    this.#containers = containers;
  }

  async exists(path: string): Promise<boolean> {
    return this.applied.has(path);
  }

  async missing(path: string): Promise<string[]> {
    return this.applied.has(path) ? [] : [path];
  }

  async apply(path: string, resources: CgroupResources): Promise<void> {
    const { memoryLimitBytes, ...others } = resources;
    this.applied.set(path, { ...this.applied.get(path), ...others });
    if (memoryLimitBytes === undefined) return;
    // As the kernel of v1 does.
    if (memoryLimitBytes >= 0 && memoryLimitBytes < this.#usedBy(path)) throw new Error(`EBUSY: limit of '${path}'`);
    this.applied.set(path, { ...this.applied.get(path), memoryLimitBytes });
  }

  /** The cgroup uses so much from now on. */
  use(path: string, bytes: number): void {
    this.#used.set(path, bytes);
  }

  /** Removes the limits of all cgroups other than pods'. */
  loosen(): void {
    for (const [path, resources] of this.applied) {
      if (!path.includes("/pod")) this.applied.set(path, { ...resources, memoryLimitBytes: -1, cpuShares: 1024 });
    }
  }

  #usedBy(path: string): number {
    return this.#used.get(path) ?? usualBytes;
  }

  async read(path: string): Promise<CgroupState> {
    const container = this.#running().find(({ id }) => path.endsWith(`/crio-${id}`));
    if (container !== undefined) return containerCgroup(container);
    const {
      cpuShares = 1024,
      cpuQuotaMicroseconds = -1,
      cpuPeriodMicroseconds = 100_000,
      memoryLimitBytes = -1,
    } = this.applied.get(path) ?? {};
    return {
      resources: { cpuShares, cpuQuotaMicroseconds, cpuPeriodMicroseconds, memoryLimitBytes },
      memoryUsageBytes: this.#usedBy(path),
    };
  }

  async children(path: string): Promise<string[]> {
    const prefix = `${path}/`;
    const own = this.#running().filter(({ config }) => path.endsWith(`/pod${config.labels["io.kubernetes.pod.uid"]}`));
    const containers = own.flatMap(({ id }) => [`crio-conmon-${id}`, `crio-${id}`]);
    return containers.concat(
      [...this.applied.keys()]
        .filter((known) => known.startsWith(prefix) && !known.slice(prefix.length).includes("/"))
        .map((known) => known.slice(prefix.length)),
    );
  }

  #running(): SimContainer[] {
    return [...this.#containers()].filter(({ state }) => state === "running");
  }

  async pids(): Promise<number[]> {
    return [];
  }

  async ownPids(): Promise<number[]> {
    return [];
  }

  async move(_pids: readonly number[], path: string): Promise<ReadonlyMap<number, unknown>> {
    await this.apply(path, {});
    return new Map();
  }

  async removeEmpty(path: string): Promise<EmptyRemoval> {
    if ((await this.children(path)).length > 0) return "refused";
    const outcome = this.applied.has(path) ? "removed" : "absent";
    return this.remove(path).then(
      () => outcome,
      () => "refused",
    );
  }

  async remove(path: string): Promise<void> {
    for (const known of [...this.applied.keys()]) {
      if (known === path || known.startsWith(`${path}/`)) this.applied.delete(known);
    }
  }
}

function containerCgroup({ resources }: SimContainer): CgroupState {
  const { cpuShares = 0n, cpuQuota = 0n, cpuPeriod = 0n, memoryLimitInBytes = 0n } = resources ?? {};
  return {
    resources: {
      cpuShares: Number(cpuShares) || 1024,
      cpuQuotaMicroseconds: Number(cpuQuota) || -1,
      cpuPeriodMicroseconds: Number(cpuPeriod) || 100_000,
      memoryLimitBytes: Number(memoryLimitInBytes) || -1,
    },
    memoryUsageBytes: usualBytes,
  };
}

export class SimMounts implements Mounts {
  readonly #mounts: MountPoint[] = [];
  /** SELinux is enabled: file systems have labels, unless they are mounted with one. */
  hasLabels = false;

  async list(): Promise<MountPoint[]> {
    return [...this.#mounts];
  }

  async below(path: string): Promise<MountPoint[]> {
    return this.#mounts.filter(({ target }) => target === path || target.startsWith(`${path}/`));
  }

  /** A mount target at or below the path; undefined: none. */
  anyBelow(path: string): string | undefined {
    return this.#mounts.find(({ target }) => target === path || target.startsWith(`${path}/`))?.target;
  }

  /** Every mounted path, in mount order. */
  get targets(): readonly string[] {
    return this.#mounts.map(({ target }) => target);
  }

  isMounted(device: string): boolean {
    return this.#mounts.some(({ source }) => source === device);
  }

  /** The machine is switched off. */
  clear(): void {
    this.#mounts.length = 0;
  }

  async mount(mount: MountPoint): Promise<void> {
    const isLabelled = this.hasLabels && !mount.options.some((option) => option.startsWith("context="));
    this.#mounts.push(isLabelled ? { ...mount, options: [...mount.options, "seclabel"] } : mount);
  }

  async unmount(target: string): Promise<void> {
    const index = this.#mounts.findLastIndex((mount) => mount.target === target);
    if (index >= 0) this.#mounts.splice(index, 1);
  }
}

/** The simulated machine's loop devices, by backing path. */
export class SimLoopDevices implements LoopDevices {
  readonly held = new Set<string>();

  async isHeld(path: string): Promise<boolean> {
    return this.held.has(path);
  }

  async hold(path: string): Promise<void> {
    this.held.add(path);
  }

  async release(path: string): Promise<void> {
    this.held.delete(path);
  }
}

/** No other processes: the simulation needs none. */
export const simProcesses: Processes = {
  ownPid: 1,
  run: () => Promise.reject(new Error("the simulated machine runs no programs")),
  list: async () => [],
  sharesRoot: () => true,
  isAlive: () => false,
  kill: () => false,
};

export const silentLog: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};
