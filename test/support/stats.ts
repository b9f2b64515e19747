import { readFileSync } from "node:fs";
import type { Cgroups } from "../../src/ports/cgroups.ts";
import { cgroupDirectory } from "../../src/stats/cgroup-files.ts";
import type { CgroupLayout, StatsFiles } from "../../src/ports/stats-files.ts";

/** The files of a recorded cgroup by name. */
export function recordedCgroup(version: 1 | 2): Map<string, string> {
  const text = readFileSync(new URL(`../fixtures/kernel/cgroup-v${version}.txt`, import.meta.url), "utf8");
  return new Map(
    [...text.matchAll(/^== (.+)\n((?:(?!== ).*\n)*)/gmu)].map(([, name = "", content = ""]) => [name, content]),
  );
}

/** Statistics from a map of files by path; counts what is read. */
export class RecordedStatsFiles implements StatsFiles {
  readonly cgroups: CgroupLayout;
  readonly texts = new Map<string, string>();
  readonly children = new Map<string, readonly string[]>();
  reads = 0;

  constructor(cgroups: CgroupLayout) {
    this.cgroups = cgroups;
  }

  /** Puts a recorded cgroup at a path below the root. */
  addCgroup(path: string): void {
    const layout = this.cgroups;
    for (const [name, text] of recordedCgroup(layout.version)) {
      const roots = layout.version === 2 ? [layout.root] : Object.values(layout.controllers);
      for (const root of roots) this.texts.set(`${root}${path}/${name}`, text);
    }
  }

  /** The machine's own cgroup, as v2 shows it: without a total of memory, and here with 600 KiB, 500 of them in use. */
  addRootCgroup(): void {
    this.addCgroup("");
    const root = cgroupDirectory(this.cgroups, "/");
    for (const name of ["memory.current", "memory.max", "memory.swap.current", "memory.swap.max", "cpu.pressure"]) {
      this.texts.delete(`${root}/${name}`);
    }
    const figures = { anon: 400 * 1024, file: 200 * 1024, inactive_file: 100 * 1024, pgfault: 42, pgmajfault: 2 };
    this.texts.set(
      `${root}/memory.stat`,
      Object.entries(figures)
        .map(([name, value]) => `${name} ${value}\n`)
        .join(""),
    );
  }

  async readTexts(paths: readonly string[]): Promise<(string | undefined)[]> {
    this.reads += paths.length;
    return paths.map((path) => this.texts.get(path));
  }

  async directories(path: string): Promise<string[]> {
    this.reads++;
    return [...(this.children.get(path) ?? [])];
  }

  async fileSystem(_path?: string): ReturnType<StatsFiles["fileSystem"]> {
    this.reads++;
    return { capacityBytes: 1000, availableBytes: 400, usedBytes: 500, inodes: 100, inodesFree: 60 };
  }

  async deviceOf(): Promise<string | undefined> {
    return "/dev/sda1";
  }

  /** Numbers of file systems by path; all others lie on one. */
  readonly numbers = new Map<string, number>();

  async fileSystemNumber(path: string): Promise<number | undefined> {
    return this.numbers.get(path) ?? 1;
  }

  async mountedDevices(): ReturnType<StatsFiles["mountedDevices"]> {
    return [{ source: "/dev/sda1", number: "8:1" }];
  }

  /** Writable directories of processes' roots by process ID. */
  readonly uppers = new Map<number, string>();

  async upperDirectories(pids: readonly number[]): Promise<(string | undefined)[]> {
    return pids.map((pid) => this.uppers.get(pid));
  }

  async treeUsage(): ReturnType<StatsFiles["treeUsage"]> {
    this.reads++;
    return { bytes: 8192, inodes: 2 };
  }

  async filesUsage(_directory?: string): ReturnType<StatsFiles["filesUsage"]> {
    this.reads++;
    return { bytes: 4096, inodes: 1 };
  }

  /** When paths were changed, wall clock ms. */
  readonly changes = new Map<string, number>();

  async changed(paths: readonly string[]): Promise<number | undefined> {
    const times = paths.flatMap((path) => this.changes.get(path) ?? []);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  async openFiles(): ReturnType<StatsFiles["openFiles"]> {
    return { descriptors: 7, sockets: 2 };
  }
}

/** Cgroups that are not there. */
export const simulatedCgroups: Cgroups = {
  version: 2,
  exists: async () => false,
  missing: async () => [],
  apply: async () => {},
  read: async () => {
    throw new Error("no such cgroup");
  },
  children: async () => [],
  ownPids: async () => [],
  move: async () => new Map(),
  pids: async () => [],
  removeEmpty: async () => "absent",
  remove: async () => {},
};
