import type { Clock } from "../ports/clock.ts";
import type { Processes } from "../ports/processes.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import { cgroupCreationPaths } from "./cgroup-files.ts";
import type { CgroupSample } from "./cgroup-sample.ts";
import { parseBootTime, parseOwnCgroup, parseProcessStat, parseResidentBytes } from "../base/kernel-text.ts";
import type { SystemSample } from "./node-sample.ts";

/** The cgroup of a system process of the node. */
export interface SystemCgroup {
  readonly name: SystemSample["name"];
  readonly cgroup: string;
  /** Undefined for a cgroup without a known process. */
  readonly pid: number | undefined;
  readonly startedMs: number | undefined;
}

/** Configured cgroups; undefined ones are detected. */
export interface SystemCgroupSettings {
  readonly kubelet: string | undefined;
  readonly runtime: string | undefined;
  readonly misc: string | undefined;
  /** Of all pods; undefined: they have none. */
  readonly pods: string | undefined;
  /** Of the pods of a QoS class: those below that of all pods. */
  readonly qosClasses: readonly string[];
  /** The program's name: `containerd`. */
  readonly runtimeProgram: string;
  /** When podwright started, wall clock ms. */
  readonly startedMs: number;
}

export interface SystemCgroupDependencies {
  readonly clock: Clock;
  readonly files: StatsFiles;
  readonly processes: Pick<Processes, "ownPid" | "list">;
}

/** The runtime may have been restarted in another cgroup. */
const lookAgainMs = 60_000;

/** Finds the cgroups of podwright itself, of the runtime, of all pods together, and of their QoS classes. */
export class SystemCgroups {
  readonly #deps: SystemCgroupDependencies;
  readonly #settings: SystemCgroupSettings;
  /** All processes of the runtime's program, as last listed. */
  #runtimes: readonly number[] = [];
  #found: { readonly atMs: number; readonly cgroups: Promise<readonly SystemCgroup[]> } | undefined;

  constructor(deps: SystemCgroupDependencies, settings: SystemCgroupSettings) {
    this.#deps = deps;
    this.#settings = settings;
  }

  async find(): Promise<readonly SystemCgroup[]> {
    const nowMs = this.#deps.clock.monotonic();
    if (this.#found === undefined || nowMs - this.#found.atMs > lookAgainMs) {
      this.#found = { atMs: nowMs, cgroups: this.#look() };
    }
    return await this.#found.cgroups;
  }

  async #look(): Promise<readonly SystemCgroup[]> {
    const { kubelet, runtime, misc, pods, qosClasses, startedMs } = this.#settings;
    const { ownPid } = this.#deps.processes;
    const own = kubelet ?? (await this.#cgroupOf(ownPid));
    const found: SystemCgroup[] = pods === undefined ? [] : [await this.#named("pods", pods)];
    for (const cgroup of qosClasses) found.push(await this.#named("qos", cgroup));
    if (own !== undefined) found.push({ name: "kubelet", cgroup: own, pid: ownPid, startedMs });
    if (misc !== undefined) found.push(await this.#named("misc", misc));
    if (runtime !== undefined) return [...found, await this.#named("runtime", runtime)];
    const pid = await this.#runtimePid();
    const cgroup = pid === undefined ? undefined : await this.#cgroupOf(pid);
    if (pid === undefined || cgroup === undefined) return found;
    return [...found, { name: "runtime", cgroup, pid, startedMs: await this.#startOf(pid) }];
  }

  /** A cgroup without a known process: it starts with its creation. */
  async #named(name: SystemCgroup["name"], cgroup: string): Promise<SystemCgroup> {
    const { files } = this.#deps;
    const startedMs = await files.changed(cgroupCreationPaths(files.cgroups, cgroup));
    return { name, cgroup, pid: undefined, startedMs };
  }

  /** Undefined also with several runtimes: podwright's is unknown. */
  async #runtimePid(): Promise<number | undefined> {
    const { files, processes } = this.#deps;
    const { runtimeProgram } = this.#settings;
    // On a machine with hundreds of pods, listing all processes takes longer than reading all their statistics.
    const names = await files.readTexts(this.#runtimes.map((pid) => `/proc/${pid}/comm`));
    if (names.length === 0 || names.some((name) => name?.trimEnd() !== runtimeProgram)) {
      this.#runtimes = (await processes.list()).flatMap(({ name, pid }) => (name === runtimeProgram ? [pid] : []));
    }
    return this.#runtimes.length === 1 ? this.#runtimes[0] : undefined;
  }

  async #cgroupOf(pid: number): Promise<string | undefined> {
    const { files } = this.#deps;
    const [text] = await files.readTexts([`/proc/${pid}/cgroup`]);
    return parseOwnCgroup(text, files.cgroups.version === 2 ? undefined : "memory");
  }

  async #startOf(pid: number): Promise<number | undefined> {
    const [stat, own] = await this.#deps.files.readTexts(["/proc/stat", `/proc/${pid}/stat`]);
    const [bootedMs, usage] = [parseBootTime(stat), parseProcessStat(own)];
    return bootedMs === undefined || usage === undefined ? undefined : bootedMs + usage.startedMs;
  }
}

/** A single process in the format of a cgroup, by its stat and its status. */
export function processSample(
  stat: string | undefined,
  status: string | undefined,
  timeMs: number,
): CgroupSample | undefined {
  const [usage, residentBytes] = [parseProcessStat(stat), parseResidentBytes(status)];
  if (usage === undefined || residentBytes === undefined) return undefined;
  const { cpuNanoseconds, pageFaults, majorPageFaults } = usage;
  return {
    timeMs,
    cpu: { usageNanoseconds: cpuNanoseconds },
    memory: {
      usage: residentBytes,
      workingSet: residentBytes,
      rss: residentBytes,
      cache: 0,
      mappedFile: 0,
      activeFile: 0,
      inactiveFile: 0,
      swap: 0,
      pageFaults,
      majorPageFaults,
    },
    pids: [],
  };
}
