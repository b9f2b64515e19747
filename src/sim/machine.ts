import type { CgroupResources, Cgroups, CgroupState } from "../ports/cgroups.ts";
import type { Logger } from "../ports/log.ts";
import type { MountPoint, Mounts } from "../ports/mounts.ts";
import type { Processes } from "../ports/processes.ts";

/** The simulated machine's cgroup tree: paths and what was last applied to each. */
export class SimCgroups implements Cgroups {
  readonly version = 2;
  readonly applied = new Map<string, CgroupResources>();

  async exists(path: string): Promise<boolean> {
    return this.applied.has(path);
  }

  async apply(path: string, resources: CgroupResources): Promise<void> {
    this.applied.set(path, { ...this.applied.get(path), ...resources });
  }

  async read(path: string): Promise<CgroupState> {
    const {
      cpuShares = 1024,
      cpuQuotaMicroseconds = -1,
      cpuPeriodMicroseconds = 100_000,
      memoryLimitBytes = -1,
    } = this.applied.get(path) ?? {};
    return {
      resources: { cpuShares, cpuQuotaMicroseconds, cpuPeriodMicroseconds, memoryLimitBytes },
      memoryUsageBytes: 1 << 20,
    };
  }

  async children(path: string): Promise<string[]> {
    const prefix = `${path}/`;
    return [...this.applied.keys()]
      .filter((known) => known.startsWith(prefix) && !known.slice(prefix.length).includes("/"))
      .map((known) => known.slice(prefix.length));
  }

  async pids(): Promise<number[]> {
    return [];
  }

  async remove(path: string): Promise<void> {
    for (const known of [...this.applied.keys()]) {
      if (known === path || known.startsWith(`${path}/`)) this.applied.delete(known);
    }
  }
}

export class SimMounts implements Mounts {
  readonly #mounts: MountPoint[] = [];

  async list(): Promise<MountPoint[]> {
    return [...this.#mounts];
  }

  async mount(mount: MountPoint): Promise<void> {
    this.#mounts.push(mount);
  }

  async unmount(target: string): Promise<void> {
    const index = this.#mounts.findLastIndex((mount) => mount.target === target);
    if (index >= 0) this.#mounts.splice(index, 1);
  }
}

/** No other processes: nothing simulated so far runs or looks for any. */
export const simProcesses: Processes = {
  ownPid: 1,
  run: () => Promise.reject(new Error("the simulated machine runs no programs")),
  list: async () => [],
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
