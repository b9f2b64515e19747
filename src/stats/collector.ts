import type { Clock } from "../ports/clock.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import { cgroupDirectory, type CgroupFilePath, cgroupFilePaths, cgroupSample } from "./cgroup-files.ts";
import type { CgroupSample } from "./cgroup-sample.ts";
import { sumOfContainers } from "./container-sum.ts";
import { CpuRates } from "./cpu-rates.ts";
import { type Depth, isAtLeast } from "./depth.ts";
import { parseNetDev } from "../base/kernel-text.ts";
import { innerProcesses } from "./inner-processes.ts";
import { machinePaths, machineSample } from "./machine-sample.ts";
import type { ContainerSample, NetworkSample, NodeSample, PodSample, SystemSample } from "./node-sample.ts";
import type { StatsPod } from "./stats-pods.ts";
import { processSample, type SystemCgroup } from "./system-cgroups.ts";

export interface CollectorDependencies {
  readonly clock: Clock;
  readonly files: StatsFiles;
  readonly pods: () => readonly StatsPod[];
  /** The node's system processes: looked up periodically. */
  readonly system: () => Promise<readonly SystemCgroup[]>;
}

/** Requests within this time get the same sample: concurrent scrapes cost one reading. */
const freshMs = 1_000;

function idsOf({ sandboxId, containers }: StatsPod): string[] {
  return [sandboxId, ...containers.map(({ id }) => id)];
}

/**
 * Names of containers' cgroups end with their IDs, after the runtime's prefix. CRI-O's monitor of a container and, where
 * pods have no cgroups, systemd's mounts of its files have the ID in their names, too.
 */
function isCgroupOf(id: string, name: string): boolean {
  if (name === id) return true;
  return !name.startsWith("crio-conmon-") && (name.endsWith(`-${id}`) || name.endsWith(`-${id}.scope`));
}

/** A cgroup to read, with the position of its files in the batch. */
interface Wanted {
  readonly cgroup: string;
  readonly files: readonly CgroupFilePath[];
  readonly first: number;
}

/**
 * Resource usage of the node, its pods and their containers (cAdvisor's job). Reads the kernel's files on request only.
 * Keeps the last sample, and the counters for rates.
 */
export class StatsCollector {
  readonly #deps: CollectorDependencies;
  readonly #rates = new CpuRates();
  /** Cgroups of containers and sandboxes below their pod's, by container ID. */
  readonly #directories = new Map<string, string>();
  #last: { readonly depth: Depth; readonly atMs: number; readonly sample: Promise<NodeSample> } | undefined;

  constructor(deps: CollectorDependencies) {
    this.#deps = deps;
  }

  /** The node's sample with at least this depth, at most a second old. */
  async collect(depth: Depth): Promise<NodeSample> {
    const nowMs = this.#deps.clock.monotonic();
    if (this.#last !== undefined && nowMs - this.#last.atMs < freshMs && isAtLeast(this.#last.depth, depth)) {
      return await this.#last.sample;
    }
    const sample = this.read(depth);
    const last = { depth, atMs: nowMs, sample };
    this.#last = last;
    sample.catch(() => {
      if (this.#last === last) this.#last = undefined;
    });
    return await sample;
  }

  /** A new sample of the node. */
  async read(depth: Depth): Promise<NodeSample> {
    const { clock, pods, system } = this.#deps;
    const measured = pods();
    const systems = (await system()).filter(({ name }) => name !== "qos" || isAtLeast(depth, "everything"));
    await this.#findDirectories(measured);
    const cgroups = ["/", ...systems.map(({ cgroup }) => cgroup), ...measured.flatMap((pod) => this.#cgroupsOf(pod))];
    const samples = await this.#readCgroups(new Set(cgroups), depth);
    const wide = isAtLeast(depth, "summary");
    if (wide) await this.#findInnerProcesses(measured, samples);
    const networks = wide ? await this.#readNetworks(measured, samples) : new Map<string, NetworkSample>();
    const root = samples.get("/");
    const machine = await this.#readMachine(root, depth);
    this.#rates.sweep(clock.monotonic());
    return {
      timeMs: clock.now(),
      machine,
      system: await this.#systemSamples(systems, samples),
      pods: measured.map((pod) => this.#podSample(pod, samples, networks)),
    };
  }

  async #findDirectories(pods: readonly StatsPod[]): Promise<void> {
    const { files } = this.#deps;
    const known = new Set<string>();
    for (const pod of pods) {
      const [parent, ids] = [pod.containersCgroup, idsOf(pod)];
      for (const id of ids) known.add(id);
      if (ids.every((id) => this.#directories.has(id))) continue;
      const names = await files.directories(cgroupDirectory(files.cgroups, parent));
      for (const id of ids) {
        const name = names.find((each) => isCgroupOf(id, each));
        if (name !== undefined) this.#directories.set(id, `${parent}/${name}`);
      }
    }
    for (const id of this.#directories.keys()) if (!known.has(id)) this.#directories.delete(id);
  }

  #cgroupsOf(pod: StatsPod): string[] {
    const own = pod.cgroup === undefined ? [] : [pod.cgroup];
    return [...own, ...idsOf(pod).flatMap((id) => this.#directories.get(id) ?? [])];
  }

  async #readCgroups(cgroups: ReadonlySet<string>, depth: Depth): Promise<Map<string, CgroupSample>> {
    const { clock, files } = this.#deps;
    const wanted: Wanted[] = [];
    const paths: string[] = [];
    for (const cgroup of cgroups) {
      const own = cgroupFilePaths(files.cgroups, cgroup, depth);
      wanted.push({ cgroup, files: own, first: paths.length });
      for (const { path } of own) paths.push(path);
    }
    const texts = await files.readTexts(paths);
    const [timeMs, nowMs] = [clock.now(), clock.monotonic()];
    const samples = new Map<string, CgroupSample>();
    for (const { cgroup, files: own, first } of wanted) {
      const named = new Map<string, string>();
      for (const [index, { name }] of own.entries()) {
        const text = texts[first + index];
        if (text !== undefined) named.set(name, text);
      }
      if (named.size === 0) continue;
      const sample = cgroupSample(files.cgroups.version, named, timeMs, cgroup === "/");
      const nanoCores = sample.cpu && this.#rates.rate(cgroup, sample.cpu.usageNanoseconds, nowMs);
      samples.set(cgroup, { ...sample, ...(nanoCores !== undefined && { nanoCores }) });
    }
    return samples;
  }

  async #findInnerProcesses(pods: readonly StatsPod[], samples: Map<string, CgroupSample>): Promise<void> {
    for (const id of pods.flatMap(idsOf)) {
      const cgroup = this.#directories.get(id);
      const sample = cgroup === undefined ? undefined : samples.get(cgroup);
      if (cgroup === undefined || sample === undefined || sample.pids.length > 0) continue;
      samples.set(cgroup, { ...sample, pids: await innerProcesses(this.#deps.files, cgroup) });
    }
  }

  /** All containers of the pod share the sandbox's network. */
  async #readNetworks(
    pods: readonly StatsPod[],
    samples: ReadonlyMap<string, CgroupSample>,
  ): Promise<Map<string, NetworkSample>> {
    const { clock, files } = this.#deps;
    const processes = pods.flatMap((pod) => {
      const pid = idsOf(pod)
        .map((id) => samples.get(this.#directories.get(id) ?? "")?.pids[0])
        .find((each) => each !== undefined);
      return pid === undefined ? [] : [{ uid: pod.ref.uid, path: `/proc/${pid}/net/dev` }];
    });
    const texts = await files.readTexts(processes.map(({ path }) => path));
    const timeMs = clock.now();
    const networks = new Map<string, NetworkSample>();
    for (const [index, { uid }] of processes.entries()) {
      const text = texts[index];
      if (text !== undefined) networks.set(uid, { timeMs, interfaces: parseNetDev(text) });
    }
    return networks;
  }

  async #readMachine(root: CgroupSample | undefined, depth: Depth): Promise<NodeSample["machine"]> {
    const { clock, files } = this.#deps;
    const paths = machinePaths(depth);
    const texts = await files.readTexts(paths);
    const named = new Map(paths.flatMap((path, index) => (texts[index] === undefined ? [] : [[path, texts[index]]])));
    const timeMs = clock.now();
    return machineSample(files.cgroups.version, root ?? { timeMs, pids: [] }, named, timeMs);
  }

  async #systemSamples(
    systems: readonly SystemCgroup[],
    samples: ReadonlyMap<string, CgroupSample>,
  ): Promise<SystemSample[]> {
    const { clock, files } = this.#deps;
    const result: SystemSample[] = [];
    for (const { name, cgroup, pid, startedMs } of systems) {
      const shared = cgroup === "/" ? undefined : samples.get(cgroup);
      // If its cgroup is the machine's root, or not measured, the process's own figures are used.
      const isCounted = shared?.cpu !== undefined || pid === undefined;
      const [stat, status] = isCounted ? [] : await files.readTexts([`/proc/${pid}/stat`, `/proc/${pid}/status`]);
      const own = processSample(stat, status, clock.now());
      const nanoCores = own?.cpu && this.#rates.rate(`pid ${pid}`, own.cpu.usageNanoseconds, clock.monotonic());
      const sample = shared === undefined ? own : { ...shared, cpu: shared.cpu ?? own?.cpu };
      if (sample === undefined) continue;
      const rate = nanoCores === undefined ? {} : { nanoCores };
      result.push({ name, cgroup, startedMs, sample: { ...sample, ...rate } });
    }
    return result;
  }

  #podSample(
    pod: StatsPod,
    samples: ReadonlyMap<string, CgroupSample>,
    networks: ReadonlyMap<string, NetworkSample>,
  ): PodSample {
    const find = (id: string): { cgroup: string; sample: CgroupSample } | undefined => {
      const cgroup = this.#directories.get(id);
      const sample = cgroup === undefined ? undefined : samples.get(cgroup);
      return cgroup === undefined || sample === undefined ? undefined : { cgroup, sample };
    };
    const containers = pod.containers.flatMap((container): ContainerSample[] => {
      const found = find(container.id);
      return found === undefined ? [] : [{ container, ...found }];
    });
    const sum = (): CgroupSample | undefined => sumOfContainers(containers.map(({ sample }) => sample));
    return {
      pod,
      sample: pod.cgroup === undefined ? sum() : samples.get(pod.cgroup),
      sandbox: find(pod.sandboxId),
      containers,
      network: networks.get(pod.ref.uid),
    };
  }
}
