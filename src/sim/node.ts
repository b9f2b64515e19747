import type { Pod } from "../api/pod.ts";
import { defaultImageLimits } from "../images/image-manager.ts";
import type { JournalInput } from "../journal/entry.ts";
import { Kubelet, type KnownPod, type KubeletConfig } from "../kubelet.ts";
import { sysctlAllowlist } from "../pods/sysctl-allowlist.ts";
import { defaultGarbagePolicy } from "../runtime/garbage.ts";
import { defaultPodIds } from "../runtime/id-ranges.ts";
import type { SimClock } from "./clock.ts";
import { simCompression } from "./compression.ts";
import { type CriFaults, SimConnection } from "./cri.ts";
import { MemoryFiles } from "./files.ts";
import { silentLog, SimCgroups, SimMounts, simProcesses } from "./machine.ts";
import { SimNetworkProbes, type SimProbe } from "./network-probes.ts";
import { SimVolumeFiles } from "./volume-files.ts";
import { SimObjects } from "./volume-rules.ts";
import type { SimRandom } from "./random.ts";
import type { RuntimeWorld } from "./runtime-world.ts";

/** A journal entry of a simulated life: with the simulated time at which it was written. */
export interface SimEntry extends JournalInput {
  readonly seq: number;
  readonly atMs: number;
}

interface Life {
  readonly kubelet: Kubelet;
  readonly connection: SimConnection;
  readonly kill: () => void;
}

const resources = {
  cpuQuota: true,
  cpuPeriodMicroseconds: 100_000n,
  cgroupVersion: 2,
  singleProcessOomKill: false,
  swapAccounting: true,
  memoryCapacityBytes: 8n << 30n,
  hugePageSizes: [],
  allocatable: {},
} as const;

const config: KubeletConfig = {
  node: {
    nodeName: "sim",
    rootDirectory: "/var/lib/kubelet",
    podLogsRoot: "/var/log/pods",
    containerLogsRoot: "/var/log/containers",
    hostIPs: ["10.0.0.1"],
    clusterDomain: "",
    clusterDNS: [],
    resolvConf: "",
    cgroupDriver: "cgroupfs",
    cgroupRoot: "/",
    seccompDefault: false,
    seLinux: false,
    maskedPaths: [],
    resources,
  },
  cgroups: {
    driver: "cgroupfs",
    cgroupRoot: "/",
    cpuQuota: true,
    cpuPeriodMicroseconds: 100_000n,
    podPidsLimit: -1,
    milliCpu: 4000n,
    memoryBytes: 8n << 30n,
  },
  pleg: { relistPeriodMs: 1000, eventedRelistPeriodMs: 10_000, channelCapacity: 20, inspections: 8 },
  worker: {
    syncFrequencyMs: 60_000,
    errorBackOffMs: 10_000,
    observeLimitMs: 120_000,
    maxContainerRestartPeriodMs: 300_000,
    garbage: defaultGarbagePolicy,
  },
  images: defaultImageLimits,
  podIds: defaultPodIds(65_536),
  parallelStarts: 4,
  housekeepingPeriodMs: 2000,
  logRotation: { maxSizeBytes: 10 << 20, maxFiles: 5, maxWorkers: 1, monitorIntervalMs: 10_000 },
  garbage: { ...defaultGarbagePolicy, periodMs: 60_000 },
  runtimeRequestTimeoutMs: 120_000,
  runtimeName: "sim",
  admission: { sysctls: sysctlAllowlist("6.8.0", []), appArmor: false, supplementalGroupsPolicy: false },
};

/**
 * A whole node on a simulated machine: the production managers behind simulated ports. The machine (files, cgroups,
 * runtime) outlives the node, which can be killed between any two steps and started again.
 */
export class SimNode {
  readonly files: MemoryFiles;
  readonly cgroups = new SimCgroups();
  readonly mounts = new SimMounts();
  readonly objects = new SimObjects();
  readonly entries: SimEntry[] = [];
  /** Every probe of every life. */
  readonly probes: SimProbe[] = [];
  /** What is wanted, as the sources would say it to a node that starts. */
  readonly desired = new Map<string, Pod>();
  readonly #clock: SimClock;
  readonly #world: RuntimeWorld;
  readonly #random: SimRandom;
  #faults: CriFaults;
  #life: Life | undefined;
  #lives = 0;

  constructor(clock: SimClock, world: RuntimeWorld, random: SimRandom, faults: CriFaults) {
    this.#clock = clock;
    this.#world = world;
    this.#random = random;
    this.#faults = faults;
    this.files = new MemoryFiles(clock.incarnation());
  }

  setFaults(faults: CriFaults): void {
    this.#faults = faults;
    this.#life?.connection.setFaults(faults);
  }

  /** Starts a life of the node with what is wanted at this moment, unless one is going on. */
  start(): void {
    if (this.#life !== undefined) return;
    const clock = this.#clock.incarnation();
    const connection = new SimConnection(this.#world, clock, this.#random.fork(), this.#faults);
    const controller = new AbortController();
    let alive = true;
    const kubelet = new Kubelet(
      {
        ports: {
          clock,
          random: this.#random.fork(),
          files: this.files,
          compression: simCompression(this.files),
          processes: simProcesses,
          mounts: this.mounts,
          volumeFiles: new SimVolumeFiles(this.files),
          cgroups: this.cgroups,
          networkProbes: new SimNetworkProbes(this.#world, clock, this.#lives + 1, this.probes),
        },
        cri: connection.cri,
        journal: { record: (entry) => (alive ? this.#record(entry) : 0) },
        log: silentLog,
        objects: this.objects,
        features: { recursiveReadOnlyMounts: false, userNamespaces: true },
        sourcesReady: () => true,
        owns: async () => true,
      },
      config,
      () => {},
    );
    const kill = (): void => {
      alive = false;
      clock.kill();
      connection.kill();
    };
    this.#life = { kubelet, connection, kill };
    this.#lives++;
    this.#record({ kind: "note", what: "PodwrightStarted", message: "a life begins" });
    for (const pod of this.desired.values()) {
      kubelet.handle({ op: "add", pod, cause: { code: "ManifestFound", message: "wanted when podwright started" } });
    }
    void kubelet.run(controller.signal);
  }

  /** kill -9: nothing of this life has an effect any more. */
  kill(): void {
    this.#life?.kill();
    this.#life = undefined;
  }

  add(pod: Pod): void {
    this.desired.set(pod.metadata.uid, pod);
    this.#life?.kubelet.handle({ op: "add", pod, cause: { code: "ManifestAdded", message: "a manifest was added" } });
  }

  remove(uid: string): void {
    const pod = this.desired.get(uid);
    if (!this.desired.delete(uid) || pod === undefined) return;
    this.#life?.kubelet.handle({
      op: "remove",
      pod,
      cause: { code: "ManifestRemoved", message: "its manifest was removed" },
    });
  }

  /** The ConfigMap of all pods changes; told to the node when it lives. */
  changeObjects(): void {
    this.objects.change();
    const settings = { kind: "ConfigMap", namespace: "default", name: "settings" } as const;
    this.#life?.kubelet.objectsChanged([settings], { code: "ObjectsChanged", message: "a ConfigMap changed" });
  }

  /** How many lives the node has had, this one included. */
  get lives(): number {
    return this.#lives;
  }

  /** True when the pod is being stopped already, whatever for. */
  isEnding(uid: string): boolean {
    return this.pods().some(({ view }) => view.ref.uid === uid && view.state.kind !== "syncing");
  }

  /** True when the node has tried to get the container going in any of its lives. */
  tried(uid: string, container: string): boolean {
    return this.entries.some(
      (entry) => entry.kind !== "observation" && entry.pod?.uid === uid && entry.container === container,
    );
  }

  pods(): KnownPod[] {
    return this.#life?.kubelet.pods() ?? [];
  }

  #record(entry: JournalInput): number {
    const seq = this.entries.length + 1;
    this.entries.push({ ...entry, seq, atMs: this.#clock.nowMs });
    return seq;
  }
}
