import type { ConfigMapContent, SecretContent } from "../../src/api/object-content.ts";
import type { Pod } from "../../src/api/pod.ts";
import type { Volume } from "../../src/api/volume.ts";
import type { Cause, JournalInput } from "../../src/journal/entry.ts";
import type { Files } from "../../src/ports/files.ts";
import type { LoopDevices } from "../../src/ports/loop-devices.ts";
import type { Processes } from "../../src/ports/processes.ts";
import type { NeededObjects, ObjectLookup } from "../../src/runtime/config/environment.ts";
import { silentLog, simProcesses } from "../../src/sim/machine.ts";
import { SimRandom } from "../../src/sim/random.ts";
import { localPlugins } from "../../src/volumes/local-plugins.ts";
import { StorageWaits } from "../../src/volumes/storage-waits.ts";
import type { VolumePlugin } from "../../src/volumes/volume-plugin.ts";
import { type VolumeDependencies, VolumeManager } from "../../src/volumes/volume-manager.ts";
import type { VolumeQuotas } from "../../src/volumes/volume-quotas.ts";
import { VolumeStats } from "../../src/volumes/volume-stats.ts";
import { podWith } from "./pods.ts";

export const cause: Cause = { code: "Resync", message: "a test wants it" };

/** No objects beyond the volumes. */
export const needs: NeededObjects = { spec: {} };

/** ConfigMaps and Secrets of namespace `ns` for tests; each `set` creates a new object. */
export class TestObjects implements ObjectLookup {
  readonly #configMaps = new Map<string, ConfigMapContent>();
  readonly #secrets = new Map<string, SecretContent>();

  configMap(_namespace: string, name: string): ConfigMapContent | undefined {
    return this.#configMaps.get(name);
  }

  secret(_namespace: string, name: string): SecretContent | undefined {
    return this.#secrets.get(name);
  }

  setConfigMap(name: string, data: Readonly<Record<string, string>>): void {
    this.#configMaps.set(name, { data: new Map(Object.entries(data)), binaryData: new Map() });
  }

  setSecret(name: string, data: Readonly<Record<string, string>>): void {
    const encoder = new TextEncoder();
    this.#secrets.set(name, {
      ...{ uid: "", type: "Opaque" },
      data: new Map(Object.entries(data).map(([key, text]) => [key, encoder.encode(text)] as const)),
    });
  }

  remove(name: string): void {
    this.#configMaps.delete(name);
    this.#secrets.delete(name);
  }
}

type TestPorts = Pick<VolumeDependencies, "clock" | "files" | "volumeFiles" | "mounts"> & {
  readonly loopDevices: LoopDevices;
  /** Default: `files`. */
  readonly memoryFiles?: Files;
  /** Default: none can be run. */
  readonly processes?: Pick<Processes, "run">;
  /** Default: volumes have no quotas. */
  readonly quotas?: VolumeQuotas;
};

/** A volume manager on given ports, with settable objects and a readable journal. */
export class VolumesUnderTest {
  readonly objects = new TestObjects();
  readonly entries: JournalInput[] = [];
  readonly root: string;
  readonly #ports: TestPorts;
  manager: VolumeManager;
  stats!: VolumeStats;
  waits!: StorageWaits;

  constructor(root: string, ports: TestPorts) {
    this.root = root;
    this.#ports = ports;
    this.manager = this.restart();
  }

  /** The next run of podwright on the same machine. */
  restart(changed: Partial<VolumeDependencies> = {}, more: readonly VolumePlugin[] = []): VolumeManager {
    const journal = { record: (entry: JournalInput) => this.entries.push(entry) };
    const { objects = this.objects } = changed;
    const node = { rootDirectory: this.root, hostIPs: ["10.0.0.1"], seLinux: false, resources };
    const plugins = localPlugins({
      ...{ processes: simProcesses, memoryFiles: this.#ports.files, ...this.#ports, random: new SimRandom(1) },
      ...{ journal, objects, node, quotas: this.#ports.quotas },
    });
    const deps = { ...this.#ports, journal, log: silentLog };
    this.waits = new StorageWaits(this.#ports.clock, journal, silentLog);
    this.stats = new VolumeStats({ ...deps, random: new SimRandom(1), waits: this.waits }, 60_000);
    this.manager = new VolumeManager({
      ...deps,
      stats: this.stats,
      waits: this.waits,
      objects,
      node,
      plugins: [...plugins, ...more],
      features: () => ({ handler: "", recursiveReadOnlyMounts: false }),
      ...changed,
    });
    return this.manager;
  }

  /** `MountVolume done`, `MountVolume failed` …, in order. */
  get outcomes(): string[] {
    return this.entries.filter((entry) => entry.kind === "outcome").map(({ what, result }) => `${what} ${result}`);
  }
}

export const resources = {
  cpuQuota: true,
  cpuPeriodMicroseconds: 100_000n,
  cgroupVersion: 2,
  singleProcessOomKill: false,
  swapAccounting: true,
  memoryCapacityBytes: 8n << 30n,
  hugePageSizes: [],
  allocatable: { cpu: 4, memory: "8Gi" },
} as const;

/** A pod `ns/p` with one container `app`, which mounts each volume at `/<name>`. */
export function podOfVolumes(volumes: readonly Volume[], changed: Partial<Pod["spec"]> = {}): Pod {
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  return podWith({ containers: [{ name: "app", volumeMounts }], volumes: [...volumes], ...changed });
}
