import type { CsiDriver } from "../../src/api/csi-node.ts";
import type { PersistentVolume } from "../../src/api/persistent-volume.ts";
import type { Pod } from "../../src/api/pod.ts";
import { orAborted } from "../../src/base/abort.ts";
import type { CallObjects } from "../../src/csi/call-inputs.ts";
import { CsiDriverObjects } from "../../src/csi/csi-driver-objects.ts";
import { CsiPlugin } from "../../src/csi/csi-plugin.ts";
import { DeviceMounts } from "../../src/csi/device-mounts.ts";
import { DriverStore } from "../../src/csi/driver-store.ts";
import { Expansions } from "../../src/csi/expansions.ts";
import { CsiNames } from "../../src/csi/names.ts";
import { Publications } from "../../src/csi/publications.ts";
import { UnknownVolumes } from "../../src/csi/unknown-volumes.ts";
import { takeUpVolumes } from "../../src/csi/volumes-at-start.ts";
import type { ToldPlace } from "../../src/csi/volume-parts.ts";
import type { JournalInput } from "../../src/journal/entry.ts";
import { NodeVolumes } from "../../src/node/node-volumes.ts";
import { Collection } from "../../src/objects/collection.ts";
import type { StorageLookup } from "../../src/objects/storage-lookup.ts";
import { type RpcCallOptions, type RpcCode, RpcError } from "../../src/ports/rpc.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { simHashing } from "../../src/sim/hashing.ts";
import { silentLog, SimLoopDevices, SimMounts } from "../../src/sim/machine.ts";
import { SimVolumeFiles } from "../../src/sim/volume-files.ts";
import { VolumePaths } from "../../src/volumes/volume-paths.ts";
import type { KeptAttachment, PreparedVolume } from "../../src/volumes/volume-plugin.ts";
import type { VolumeSpec } from "../../src/volumes/volume-spec.ts";
import { StorageWaits } from "../../src/volumes/storage-waits.ts";
import { VolumesOnDisk } from "../../src/volumes/volumes-on-disk.ts";
import { ManualClock } from "./manual-clock.ts";
import { podWith } from "./pods.ts";
import { boundClaim, TestStorage } from "./storage.ts";

export const root = "/var/lib/kubelet";
const { signal } = new AbortController();

/** Of a volume that needs none. */
export const noAttachment: KeptAttachment = { wait: async () => undefined, look: async () => undefined };

interface Call {
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** The CSI room's volumes on a simulated machine, with a driver `d` whose answers a test decides about. */
export class CsiScene {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly mounts = new SimMounts();
  readonly loopDevices = new SimLoopDevices();
  readonly entries: JournalInput[] = [];
  /** The storage lets nobody change groups. */
  refusesGroups = false;
  readonly calls: Call[] = [];
  /** NodeServiceCapability.RPC.Type, by number: staging and expanding. */
  capabilities: readonly number[] = [1, 3];
  /** Drivers for whose volumes there was no place. */
  readonly limits: string[] = [];
  readonly #held = new Map<string, Promise<void>>();
  readonly #failures: { readonly method: string; readonly error: RpcError; readonly afterwards: boolean }[] = [];
  readonly storage = new TestStorage();
  /** Of the current run; tells nothing to the journal. */
  waits!: StorageWaits;
  expansions!: Expansions;
  drivers!: DriverStore;
  node = new NodeVolumes();
  devices!: DeviceMounts;
  publications!: Publications;
  unknown!: UnknownVolumes;
  plugin!: CsiPlugin;
  /** Known ones, by UID. */
  readonly pods = new Map<string, Pod>();
  /** What the Node lists. */
  listed: readonly string[] = [];
  /** Where the driver finds the root directory is another kubelet's. */
  place: ToldPlace | undefined;
  readonly names: CsiNames;
  /** The driver's CSIDriver object; undefined: it has none. */
  driverSpec: CsiDriver["spec"] | undefined;
  /** What calls need of the cluster: no Secret exists. */
  objects: CallObjects = {
    secret: async () => undefined,
    token: async () => ({ token: "", expirationTimestamp: "" }),
  };
  readonly #told: string;

  /** @param told where the driver sees the root directory */
  constructor(told = root) {
    this.#told = told;
    this.names = new CsiNames(simHashing, told, "node1");
    this.names.resolve(root);
  }

  /** The next run of the kubelet; the driver registers in it. */
  async begin(): Promise<void> {
    const { clock, files, mounts, loopDevices, names } = this;
    const journal = { record: (entry: JournalInput) => this.entries.push(entry) };
    this.node = new NodeVolumes();
    this.waits = new StorageWaits(clock, { record: () => 0 }, silentLog);
    this.drivers = new DriverStore({
      ...{ clock, called: () => {}, plugins: { connect: () => this.#node() as never } },
      onAwaited: () => this.place?.need(),
    });
    this.devices = new DeviceMounts({
      clock,
      journal,
      log: silentLog,
      drivers: this.drivers,
      names,
      inUse: () => this.node,
      waits: () => this.waits,
    });
    this.publications = new Publications();
    const storage = (): StorageLookup => this.storage;
    this.expansions = new Expansions({ clock, journal, log: silentLog, nodeName: "node1", storage });
    const { devices, publications } = this;
    this.unknown = new UnknownVolumes({
      ...{ files, mounts, names, devices, publications, journal, log: silentLog, storage },
      pod: async (uid) => this.pods.get(uid),
      listed: () => this.listed,
      drivers: this.drivers,
    });
    const objects = new CsiDriverObjects(clock, this.#driverObjects());
    objects.connect(async () => {});
    this.plugin = new CsiPlugin({
      ...{ clock, files, mounts, loopDevices, names, journal, log: silentLog },
      volumeFiles: new SimVolumeFiles(files, () => this.refusesGroups),
      drivers: this.drivers,
      objects,
      calls: this.objects,
      devices,
      publications,
      unknown: this.unknown,
      expansions: this.expansions,
      limitReached: (driver) => void this.limits.push(driver),
      republishMs: 30_000,
      asksHealth: false,
      ...(this.place && { place: this.place }),
    });
    await this.drivers.add("d", "/csi.sock", "1.0.0");
    await this.unknown.look(await takeUpVolumes({ files, mounts, names, devices, publications }), undefined);
    await this.unknown.keepSources();
    this.devices.start(signal);
  }

  /** Volumes that the Node lists as in use, by this run. */
  get inUse(): ReadonlySet<string> {
    return new Set(this.node.used);
  }

  /** Those that change something, by their names. */
  get effects(): string[] {
    return this.calls.map(({ method }) => method).filter((method) => method !== "nodeGetCapabilities");
  }

  /** The next call of the method fails. @param afterwards the driver has done it all the same */
  fail(method: string, code: RpcCode, { afterwards = false } = {}): void {
    this.#failures.push({ method, error: new RpcError(code, "by command", { isStatus: true }), afterwards });
  }

  /** Calls of the method wait for the disposal, or until they are canceled; what they do is done all the same. */
  hold(method: string): Disposable {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.set(method, promise);
    return { [Symbol.dispose]: resolve };
  }

  prepare(pod: Pod, spec: VolumeSpec): PreparedVolume {
    return this.plugin.prepare(pod, spec, new VolumePaths(root, pod.metadata.uid));
  }

  /** The volume of {@link csiSpec} after its controller has expanded it. */
  grown(): VolumeSpec {
    const claim = {
      ...boundClaim("c"),
      status: {
        phase: "Bound",
        capacity: { storage: "1Gi" },
        allocatedResources: { storage: "2Gi" },
        allocatedResourceStatuses: { storage: "NodeResizePending" },
      },
    };
    this.storage.claims.set("ns/c", claim);
    return { ...csiSpec({ capacity: { storage: "2Gi" } }), claim };
  }

  async setUp(pod: Pod, spec: VolumeSpec): Promise<PreparedVolume> {
    const prepared = this.prepare(pod, spec);
    if (!(await prepared.isSetUp())) await prepared.setUp(signal);
    return prepared;
  }

  /** As the kubelet does once the pod has ended. */
  async tearDown(uid: string): Promise<void> {
    const { clock, files, mounts, waits } = this;
    const onDisk = new VolumesOnDisk({ files, mounts, plugins: [this.plugin], waits, clock });
    const paths = new VolumePaths(root, uid as never);
    await onDisk.tearDown({ namespace: "ns", name: uid, uid: uid as never }, paths, await onDisk.find(paths), signal);
    this.unknown.releasePod(uid);
    await this.devices.ended();
  }

  /** Everything below the root directory that is no directory, and the directories that are empty. */
  async tree(path = root): Promise<string[]> {
    const found: string[] = [];
    const entries = await this.files.list(path);
    if (entries.length === 0) return path === root ? [] : [`${path.slice(root.length + 1)}/`];
    for (const { name, type } of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const below = `${path}/${name}`;
      if (type === "directory") found.push(...(await this.tree(below)));
      else found.push(below.slice(root.length + 1));
    }
    return found;
  }

  #driverObjects(): Collection<CsiDriver> {
    const objects = new Collection<CsiDriver>();
    objects.replaced(this.driverSpec ? [{ metadata: { name: "d" }, spec: this.driverSpec }] : []);
    return objects;
  }

  #node(): object {
    let isClosed = false;
    const answer = (method: string, work: (request: never) => Promise<object>) => {
      return async (request: never, { signal: canceling }: RpcCallOptions = {}) => {
        if (isClosed) throw new RpcError("Canceled", "the client is closed");
        this.calls.push({ method, request });
        const answered = (this.#held.get(method) ?? Promise.resolve()).then(() => respond(method, work, request));
        answered.catch(() => {});
        await orAborted(
          answered.then(
            () => {},
            () => {},
          ),
          canceling ?? signal,
        );
        if (canceling?.aborted === true) throw new RpcError("Canceled", "by command");
        return await answered;
      };
    };
    const respond = async (method: string, work: (request: never) => Promise<object>, request: never) => {
      const at = this.#failures.findIndex((failure) => failure.method === method);
      const [failure] = at === -1 ? [] : this.#failures.splice(at, 1);
      if (failure?.afterwards === true) await work(request);
      if (failure !== undefined) throw failure.error;
      return await work(request);
    };
    const { files, mounts } = this;
    const real = (path: string): string => path.replace(this.#told, root);
    return {
      nodeGetCapabilities: answer("nodeGetCapabilities", async () => ({
        capabilities: this.capabilities.map((type) => ({ type: { case: "rpc", value: { type } } })),
      })),
      nodeStageVolume: answer("nodeStageVolume", async ({ stagingTargetPath: target, volumeCapability }: Stage) => {
        const isDevice = volumeCapability?.accessType.case === "block";
        if (isDevice || (await mounts.below(real(target))).length > 0) return {};
        await mounts.mount({ source: "/dev/sdb", target: real(target), fileSystem: "", options: [], device: "8:16" });
        return {};
      }),
      nodeUnstageVolume: answer("nodeUnstageVolume", async ({ stagingTargetPath }: Stage) => {
        await mounts.unmount(real(stagingTargetPath));
        return {};
      }),
      nodePublishVolume: answer("nodePublishVolume", async ({ targetPath, volumeCapability }: Publish) => {
        const target = real(targetPath);
        if ((await mounts.below(target)).length > 0) return {};
        if (volumeCapability.accessType.case === "block") await files.write(target, "", 0o600);
        else await files.makeDirectory(target, 0o750);
        await mounts.mount({ source: "/dev/sdb", target, fileSystem: "", options: [], device: "8:16" });
        return {};
      }),
      nodeUnpublishVolume: answer("nodeUnpublishVolume", async ({ targetPath }: { readonly targetPath: string }) => {
        await mounts.unmount(real(targetPath));
        await files.remove(real(targetPath));
        return {};
      }),
      nodeExpandVolume: answer("nodeExpandVolume", async () => ({ capacityBytes: 0n })),
      [Symbol.dispose]: () => {
        isClosed = true;
      },
    };
  }
}

interface Stage {
  readonly stagingTargetPath: string;
  readonly volumeCapability?: Publish["volumeCapability"];
}

interface Publish {
  readonly targetPath: string;
  readonly volumeCapability: { readonly accessType: { readonly case: string } };
}

/** A pod with one container. */
export function podOf(uid: string): Pod {
  return podWith({ containers: [{ name: "app" }] }, { uid });
}

/** A claim `ns/c` of the driver's volume `h`, as a pod's volume leads to it. */
export function csiSpec(changed: Partial<PersistentVolume["spec"]> = {}): VolumeSpec {
  const claimRef = { namespace: "ns", name: "c", uid: "uid-c" };
  const csi = { driver: "d", volumeHandle: "h" };
  return {
    podVolume: "v",
    name: "pv",
    volume: { name: "v", persistentVolumeClaim: { claimName: "c" } },
    persistentVolume: { metadata: { name: "pv" }, spec: { claimRef, csi, ...changed } },
    claim: boundClaim("c"),
    readOnly: false,
    mode: changed.volumeMode ?? "Filesystem",
    isMigrated: false,
  };
}
