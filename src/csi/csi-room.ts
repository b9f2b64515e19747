import type { ApiClient } from "../api-client/client.ts";
import type { CsiDriver } from "../api/csi-node.ts";
import type { NodeObject } from "../api/node.ts";
import type { Pod } from "../api/pod.ts";
import { onAbort, orAborted } from "../base/abort.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { StartUp } from "../base/start-up.ts";
import type { Recorder } from "../journal/entry.ts";
import type { NodeVolumes } from "../node/node-volumes.ts";
import type { NodeProblem } from "../node/node-problem.ts";
import type { Watcher } from "../objects/api-objects.ts";
import type { Collection } from "../objects/collection.ts";
import type { StorageWaits, StorageWork } from "../volumes/storage-waits.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import type { ServiceAccountTokens } from "../objects/service-account-tokens.ts";
import type { PluginHandler } from "../plugins/plugin-handler.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Logger } from "../ports/log.ts";
import type { LoopDevices } from "../ports/loop-devices.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { PluginClient } from "../ports/plugin-client.ts";
import type { Random } from "../ports/random.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import { keptSpec } from "../runtime/layout/kept-spec.ts";
import type { SubsystemHealth } from "../status/health.ts";
import type { OperationObserver } from "../volumes/volume-operations.ts";
import type { VolumePlugin } from "../volumes/volume-plugin.ts";
import { AllocatableRefresh } from "./allocatable-refresh.ts";
import type { CallObjects } from "./call-inputs.ts";
import { clusterCallObjects, localCallObjects } from "./call-objects.ts";
import type { CsiClientParts } from "./csi-client.ts";
import { csiHealth } from "./csi-health.ts";
import { CsiDriverObjects } from "./csi-driver-objects.ts";
import { CsiNodePublisher } from "./csi-node-publisher.ts";
import { CsiPlugin } from "./csi-plugin.ts";
import { CsiRegistration } from "./csi-registration.ts";
import { DeviceMounts, type UsedVolumes } from "./device-mounts.ts";
import { DriverStore } from "./driver-store.ts";
import { Expansions } from "./expansions.ts";
import { CsiNames } from "./names.ts";
import { Publications } from "./publications.ts";
import { withSeenMounts } from "./seen-mounts.ts";
import { UnknownVolumes } from "./unknown-volumes.ts";
import { takeUpVolumes } from "./volumes-at-start.ts";
import type { ToldPlace } from "./volume-parts.ts";

export interface CsiPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly files: Files;
  readonly hashing: Hashing;
  readonly mounts: Mounts;
  readonly loopDevices: LoopDevices;
  readonly volumeFiles: VolumeFiles;
}

export interface CsiRoomDependencies {
  readonly ports: CsiPorts;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly plugins: PluginClient;
  /** Called after each call of a driver. */
  readonly called: CsiClientParts["called"];
  readonly observer?: OperationObserver;
  /** Undefined: no cluster. */
  readonly client: ApiClient | undefined;
  /** For CSIDriver objects: an empty collection. */
  readonly driverObjects: Collection<CsiDriver>;
  /** Without a cluster: the source of CSIDriver objects; undefined: there are none. */
  readonly watch?: Watcher;
  /** Where drivers find the root directory, if that is not always so. */
  readonly place?: ToldPlace;
}

export interface CsiRoomConfig {
  readonly nodeName: string;
  /** As configured. */
  readonly rootDirectory: string;
  /** The path where drivers see the root directory, if different. */
  readonly toldDirectory?: string;
  readonly syncFrequencyMs: number;
  readonly asksVolumeHealth: boolean;
  /** Whether a volume counts as set up only once its mount is visible here. */
  readonly checksMounts?: boolean;
}

/** What needs drivers at present. */
export interface CsiUse {
  /** UIDs of pods with volumes that are not released yet. */
  readonly pods: ReadonlySet<string>;
  /** Staged volumes that no pod uses. */
  readonly unstaging: readonly string[];
}

/** The parts of the kubelet that the room uses. */
export interface CsiServices {
  readonly pods: { get(uid: PodUid): Pod | undefined };
  readonly startUp: Pick<StartUp, "when">;
  readonly objects: Pick<ObjectLookup, "secret">;
  /** Undefined without a cluster. */
  readonly volumesInUse: (UsedVolumes & Pick<NodeVolumes, "listed" | "complete" | "completeKnown">) | undefined;
  readonly storageWaits: Pick<StorageWaits, "begin" | "attempts" | "explainBy">;
  readonly storage: StorageLookup | undefined;
  readonly api: { readonly watch: Watcher; readonly tokens: Pick<ServiceAccountTokens, "obtain"> } | undefined;
}

/** How long starting pods have to claim what an earlier run staged. */
const takeUpMs = 10_000;
/** Longest interval between looks at volumes that nothing identifies. */
const longestLookMs = 300_000;

/**
 * The CSI drivers of the node (upstream's csi plugin and nodeinfomanager): registers them, publishes them in the node's
 * CSINode, and manages their volumes.
 */
export class CsiRoom {
  readonly handler: PluginHandler;
  readonly volumePlugins: readonly VolumePlugin[];
  /** Undefined without a cluster: there is nothing to initialize. */
  readonly node: NodeProblem | undefined;
  readonly #deps: CsiRoomDependencies;
  readonly #drivers: DriverStore;
  readonly #objects: CsiDriverObjects;
  readonly #publisher: CsiNodePublisher | undefined;
  readonly #refresh: AllocatableRefresh;
  readonly #names: CsiNames;
  readonly #root: string;
  readonly #devices: DeviceMounts;
  readonly #publications = new Publications();
  readonly #unknown: UnknownVolumes;
  readonly #expansions: Expansions;
  #services: CsiServices | undefined;
  #calls: CallObjects | undefined;

  constructor(deps: CsiRoomDependencies, config: CsiRoomConfig) {
    const { nodeName, rootDirectory, toldDirectory, syncFrequencyMs, asksVolumeHealth: asksHealth } = config;
    const { checksMounts = false } = config;
    const { ports, journal, log, plugins, called, observer, client, driverObjects } = deps;
    const { clock, random } = ports;
    this.#deps = deps;
    const onAwaited = (): void => deps.place?.need();
    this.#drivers = new DriverStore({ clock, plugins, called, observer, onAwaited });
    this.#objects = new CsiDriverObjects(clock, driverObjects);
    this.#publisher = client && new CsiNodePublisher({ client, clock, random, journal, log, nodeName });
    this.#names = new CsiNames(ports.hashing, toldDirectory ?? rootDirectory, nodeName);
    this.#root = rootDirectory;
    this.#devices = new DeviceMounts({
      clock,
      journal,
      log,
      drivers: this.#drivers,
      names: this.#names,
      inUse: () => this.#services?.volumesInUse,
      waits: () => this.#services?.storageWaits,
    });
    const storage = (): StorageLookup | undefined => this.#services?.storage;
    this.#expansions = new Expansions({ clock, journal, log, nodeName, storage });
    this.#unknown = new UnknownVolumes({
      ...{ files: ports.files, mounts: ports.mounts, names: this.#names, journal, log, storage },
      devices: this.#devices,
      publications: this.#publications,
      pod: async (uid) => {
        const known = podUid(uid);
        return this.#services?.pods.get(known) ?? (await keptSpec(ports.files, { rootDirectory }, known));
      },
      listed: () => this.#services?.volumesInUse?.listed ?? [],
      drivers: this.#drivers,
    });
    const own = { drivers: this.#drivers, objects: this.#objects };
    this.#refresh = new AllocatableRefresh({
      ...own,
      clock,
      log,
      update: async (info, signal) => this.#publisher?.update(info, signal),
    });
    this.node = this.#publisher;
    this.handler = this.#registration();
    const calls: CallObjects = {
      secret: async (place, signal) => await this.#calls?.secret(place, signal),
      token: async (pod, wish, signal) => {
        if (this.#calls === undefined) throw new Error("the kubelet is not built yet");
        return await this.#calls.token(pod, wish, signal);
      },
    };
    const plugin = new CsiPlugin({
      ...ports,
      ...own,
      journal,
      observer,
      log,
      calls,
      names: this.#names,
      ...(deps.place && { place: deps.place }),
      devices: this.#devices,
      publications: this.#publications,
      unknown: this.#unknown,
      expansions: this.#expansions,
      limitReached: (driver) => void this.#refresh.ask(driver),
      republishMs: syncFrequencyMs / 2,
      asksHealth,
    });
    this.volumePlugins = [checksMounts ? withSeenMounts(plugin, ports.mounts, deps.place) : plugin];
  }

  connect(services: CsiServices): void {
    const { api, objects } = services;
    const { client, watch } = this.#deps;
    this.#services = services;
    services.storageWaits.explainBy((work) => this.#explain(work));
    this.#objects.connect(api?.watch ?? watch);
    this.#calls = client && api ? clusterCallObjects(client, api.tokens) : localCallObjects(objects);
  }

  registered(node: NodeObject): void {
    this.#publisher?.registered(node);
  }

  /** Finds the volumes that an earlier run left on disk. */
  async load(): Promise<void> {
    const { files, mounts } = this.#deps.ports;
    await files.makeDirectory(this.#root, 0o750);
    this.#names.resolve(await files.realPath(this.#root));
    const parts = { files, mounts, names: this.#names, devices: this.#devices, publications: this.#publications };
    const found = await takeUpVolumes(parts);
    await this.#unknown.look(found, undefined);
    await this.#unknown.keepSources();
    // Their pods may be ending, and wanted by no source any more.
    const isEmpty = this.#publications.all().length + this.#devices.volumes.length + this.#unknown.paths.length === 0;
    if (!isEmpty) this.#deps.place?.need();
  }

  /** Runs until the signal aborts. Rejects only for a defect. */
  async run(signal: AbortSignal): Promise<void> {
    // What waits for a call on its way would delay the stop.
    using _calls = onAbort(signal, () => this.#drivers.stop());
    this.#objects.start(signal);
    this.#refresh.start(signal);
    this.#devices.start(signal);
    await Promise.all([this.#publisher?.run(signal), this.#tidy(signal)]);
    await this.#devices.ended();
  }

  async close(): Promise<void> {
    this.#refresh.close();
    this.#drivers.close();
  }

  /** For `podwright doctor`. */
  findings(): SubsystemHealth[] {
    const drivers = this.#drivers;
    const all = this.#publications.all();
    const volumes = all.map(({ name, publication: { driver, handle } }) => ({ name, driver, handle }));
    return csiHealth(this.#deps.ports.clock.monotonic(), {
      drivers: drivers.names,
      problem: drivers.names.length > 0 ? this.#publisher?.problem : undefined,
      unpublished: this.#publisher?.unpublished ?? [],
      calls: drivers.outstanding,
      volumes,
      staged: this.#devices.volumes,
      unknown: this.#unknown.paths,
    });
  }

  get use(): CsiUse {
    const unstaging = this.#devices.volumes.filter(({ pods }) => pods === 0);
    return {
      pods: new Set(this.#publications.all().map(({ uid }) => uid)),
      unstaging: unstaging.map(({ name }) => name),
    };
  }

  /** The pod has released its resources. */
  released(uid: PodUid): void {
    this.#unknown.releasePod(uid);
    this.#expansions.removePod(uid);
  }

  remove(uid: PodUid): void {
    this.released(uid);
  }

  /** Work on a volume may wait for another pod's call. */
  #explain({ pod, volume, driver }: StorageWork): string | undefined {
    const own = pod && this.#publications.get(pod.uid, volume);
    const known = own ?? this.#devices.volumes.find((each) => each.driver === driver && each.name === volume);
    return known && this.#drivers.turns.wait(driver, known.handle);
  }

  #registration(): PluginHandler {
    const publisher = this.#publisher;
    return new CsiRegistration({
      drivers: this.#drivers,
      install:
        publisher &&
        (async (info, signal) => {
          this.#objects.need();
          await publisher.install(info, signal);
          this.#refresh.sync();
        }),
      uninstall: (name) => {
        publisher?.uninstall(name);
        this.#refresh.sync();
      },
    });
  }

  /** Volumes that no pod has claimed by then are orphaned. */
  async #tidy(signal: AbortSignal): Promise<void> {
    if (this.#services !== undefined) await orAborted(this.#services.startUp.when("allKnown"), signal);
    const { clock } = this.#deps.ports;
    const wait = "pods to take up what an earlier run staged";
    await clock.sleep(wait, takeUpMs, signal).catch(() => {});
    for (let pauseMs = takeUpMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestLookMs)) {
      await this.#unknown.lookAgain(signal);
      await this.#unknown.keepSources();
      this.#devices.tidy();
      await this.#listUsed(signal);
      if (this.#unknown.paths.length === 0) return;
      await clock.sleep("volumes with damaged data files to be known", pauseMs, signal).catch(() => {});
    }
  }

  async #listUsed(signal: AbortSignal): Promise<void> {
    const inUse = this.#services?.volumesInUse;
    // The Node does not list one that is only staged: it would be known by that.
    if (!this.#unknown.mayBePublished) {
      inUse?.complete();
      return;
    }
    await this.#unknown.clearUnstaged(signal);
    inUse?.completeKnown((volume) => this.#unknown.isCleared(volume));
  }
}
