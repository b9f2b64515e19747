import { CsiNames, uniqueVolumeName } from "../../csi/names.ts";
import type { Registry } from "../api-server/registry.ts";
import type { SimApiServer } from "../api-server/server.ts";
import type { Stored } from "../api-server/store.ts";
import { type Fields, fieldsAt, listAt, type Value } from "../api-server/values.ts";
import type { SimClock } from "../clock.ts";
import { simHashing } from "../hashing.ts";
import type { SimRandom } from "../random.ts";
import { claimedVolumes, type ClaimedVolume, deviceVolumes, driverObjects } from "./claimed-volumes.ts";

/** Interval of the attach-detach controller, and maximum time to attach a volume, ms. */
const lookMs = 1000;
const longestAttachMs = 3000;
const slowestAttachMs = 200_000;
/** gRPC's RESOURCE_EXHAUSTED. */
const resourceExhausted = 8;

const over: ReadonlySet<unknown> = new Set(["Succeeded", "Failed"]);

export interface SimStorageParts {
  readonly server: SimApiServer;
  readonly clock: SimClock;
  readonly random: SimRandom;
  readonly nodeName: string;
  /** Volumes have sizes, and their driver's controller makes them larger. */
  readonly grows: boolean;
  /** There are block volumes, disks of the node, and volumes for one pod at a time. */
  readonly hasDevices: boolean;
}

/**
 * The storage of a simulated cluster: claims that are bound early, late and again, and the attach-detach controller. It
 * attaches volumes that pods claim, and detaches those that no pod claims and that the Node does not list as in use.
 */
export class SimStorage {
  /** Called immediately before a volume is detached. */
  onDetach: (volume: ClaimedVolume) => void = () => {};
  /** The node has no place for another volume: attaching fails with that reason, and is tried again. */
  isFull = false;
  readonly volumes: readonly ClaimedVolume[];
  readonly #registry: Registry;
  readonly #clock: SimClock;
  readonly #random: SimRandom;
  readonly #names: CsiNames;
  readonly #nodeName: string;
  /** Volumes that are being attached. */
  readonly #coming = new Set<ClaimedVolume>();
  /** What brings back the objects of drivers that are not there. */
  readonly #returning = new Set<() => void>();
  /** GiB by volume; empty: nobody speaks of sizes. */
  readonly #sizes = new Map<ClaimedVolume, number>();
  /** Of claims that were not bound anew since their volumes have grown: only the node says that it is done. */
  readonly #waiting = new Set<ClaimedVolume>();
  #claims = 0;
  #isSlow = false;

  constructor({ server, clock, random, nodeName, grows, hasDevices }: SimStorageParts) {
    this.volumes = hasDevices ? [...claimedVolumes, ...deviceVolumes] : claimedVolumes;
    this.#registry = server.registry;
    this.#clock = clock;
    this.#random = random;
    this.#nodeName = nodeName;
    this.#names = new CsiNames(simHashing, "/var/lib/kubelet", nodeName);
    for (const driver of driverObjects) this.#registry.create("csidrivers", undefined, driver);
    for (const volume of this.volumes) {
      if (grows && volume.device === undefined) this.#sizes.set(volume, 1);
      this.#registry.create("persistentvolumes", undefined, volumeObject(volume, "", this.sizeOf(volume)));
      this.claim(volume);
      if (!volume.isLate) this.bind(volume);
    }
    this.#look();
  }

  /** Nodes read the driver's limit every so often, and reject pods whose volumes exceed it. */
  limit(driver: string): void {
    this.#change(driver, { nodeAllocatableUpdatePeriodSeconds: 60 });
  }

  /** Its volumes for one pod at a time are mounted with the pod's SELinux label. */
  askForLabels(driver: string): void {
    this.#change(driver, { seLinuxMount: true });
  }

  /** Its CSIDriver object is not there. Returns what brings it back. */
  withoutObject(driver: string): () => void {
    const { store } = this.#registry;
    const object = store.get("csidrivers", `/${driver}`);
    if (object === undefined) return () => {};
    store.remove("csidrivers", object.key);
    const back = (): void => {
      this.#returning.delete(back);
      const { metadata, spec } = object.value;
      const kind = { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver" };
      this.#registry.create("csidrivers", undefined, { ...kind, metadata: { name: metadata.name }, spec });
    };
    this.#returning.add(back);
    return () => {
      if (this.#returning.has(back)) back();
    };
  }

  /** Lets attaching take minutes. */
  slowDown(forMs: number): void {
    this.#isSlow = true;
    this.#clock.schedule("attaching to be quick again", forMs, () => void (this.#isSlow = false));
  }

  /** Binds all claims and ends all delays. */
  calm(): void {
    this.#isSlow = false;
    for (const back of this.#returning) back();
    for (const volume of this.volumes) {
      if (this.#claimOf(volume) === undefined) this.claim(volume);
      this.bind(volume);
    }
  }

  /** Creates the claim, not bound yet. */
  claim(volume: ClaimedVolume): void {
    if (this.#claimOf(volume) !== undefined) return;
    const metadata = { name: volume.claim, finalizers: ["kubernetes.io/pvc-protection"] };
    const object = {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata,
      spec: waysOf(volume),
      status: { phase: "Pending" },
    };
    this.#registry.create("persistentvolumeclaims", "default", object, `claim-${++this.#claims}`);
  }

  bind(volume: ClaimedVolume): void {
    const claim = this.#claimOf(volume);
    if (claim === undefined) return;
    const { store } = this.#registry;
    const bound = volumeObject(volume, claim.value.metadata.uid, this.sizeOf(volume)) as unknown as Value;
    const before = store.get("persistentvolumes", `/${volume.name}`);
    if (before === undefined) return;
    const persistent = { ...before.value, ...bound, metadata: before.value.metadata };
    if (JSON.stringify(persistent) !== before.text) store.put("persistentvolumes", before.key, persistent);
    const spec = { ...fieldsAt(claim.value, "spec"), volumeName: volume.name };
    const known = fieldsAt(claim.value, "status");
    // A new claim is as large as its volume; what its resizer and the node say of a bound one stays.
    if (known["phase"] !== "Bound") this.#waiting.delete(volume);
    const status = known["phase"] === "Bound" ? known : { phase: "Bound", ...capacityOf(this.sizeOf(volume)) };
    const claimed = { ...claim.value, spec, status };
    if (JSON.stringify(claimed) !== claim.text) store.put("persistentvolumeclaims", claim.key, claimed);
  }

  /** As written in its PersistentVolume; undefined: nobody speaks of it. */
  sizeOf(volume: ClaimedVolume): string | undefined {
    const size = this.#sizes.get(volume);
    return size === undefined ? undefined : `${size}Gi`;
  }

  /** Its user wants more, and the driver's controller and resizer have done their part: the node's is left. */
  grow(volume: ClaimedVolume): void {
    const { store } = this.#registry;
    const [claim, persistent] = [this.#claimOf(volume), store.get("persistentvolumes", `/${volume.name}`)];
    const size = this.#sizes.get(volume);
    if (claim === undefined || persistent === undefined || size === undefined) return;
    if (fieldsAt(claim.value, "status")["phase"] !== "Bound") return;
    this.#sizes.set(volume, size + 1);
    const capacity = capacityOf(this.sizeOf(volume));
    store.put("persistentvolumes", persistent.key, {
      ...persistent.value,
      spec: { ...fieldsAt(persistent.value, "spec"), ...capacity },
    });
    const { conditions: _before, ...status } = fieldsAt(claim.value, "status");
    store.put("persistentvolumeclaims", claim.key, {
      ...claim.value,
      spec: { ...fieldsAt(claim.value, "spec"), resources: { requests: capacity["capacity"] } },
      status: {
        ...status,
        allocatedResources: capacity["capacity"],
        allocatedResourceStatuses: { storage: "NodeResizePending" },
        conditions: [{ type: "FileSystemResizePending", status: "True" }],
      },
    });
    this.#waiting.add(volume);
  }

  /** Whether its claim is as large as its volume because this node says so. */
  isExpanded(volume: ClaimedVolume): boolean {
    const { storage } = fieldsAt(this.claimStatus(volume), "capacity");
    return this.#waiting.has(volume) && storage === this.sizeOf(volume);
  }

  /** What its claim says. */
  claimStatus(volume: ClaimedVolume): Fields {
    return fieldsAt(this.#claimOf(volume)?.value ?? {}, "status");
  }

  /** Deletes the claim immediately, even if it is in use; pods keep its volume. */
  deleteClaim(volume: ClaimedVolume): void {
    const claim = this.#claimOf(volume);
    if (claim !== undefined) this.#registry.store.remove("persistentvolumeclaims", claim.key);
  }

  /** Volumes that the Node lists as in use. */
  get inUse(): readonly string[] {
    const [node] = this.#registry.store.list("nodes");
    const { volumesInUse } = fieldsAt(node?.value ?? {}, "status");
    return Array.isArray(volumesInUse) ? volumesInUse.map(String) : [];
  }

  isAttached({ driver, handle }: ClaimedVolume): boolean {
    const name = uniqueVolumeName(driver, handle);
    return this.#attached().some((each) => each["name"] === name);
  }

  #change(driver: string, changed: Fields): void {
    const { store } = this.#registry;
    const object = store.get("csidrivers", `/${driver}`);
    if (object === undefined) return;
    store.put("csidrivers", object.key, { ...object.value, spec: { ...fieldsAt(object.value, "spec"), ...changed } });
  }

  #look(): void {
    this.#clock.schedule("a look of the attach-detach controller", lookMs, () => this.#look());
    const wanted = this.#wanted();
    for (const volume of this.volumes.filter(({ isAttached }) => isAttached)) {
      const isThere = this.isAttached(volume);
      if (wanted.has(volume.claim)) {
        if (!isThere) this.#attach(volume);
      } else if (isThere && !this.inUse.includes(uniqueVolumeName(volume.driver, volume.handle))) {
        this.#detach(volume);
      }
    }
  }

  /** The claims of active pods. */
  #wanted(): ReadonlySet<unknown> {
    const pods = this.#registry.store.list("pods").filter(({ value }) => !over.has(fieldsAt(value, "status")["phase"]));
    return new Set(
      pods.flatMap(({ value }) =>
        listAt(fieldsAt(value, "spec"), "volumes").map((each) => fieldsAt(each, "persistentVolumeClaim")["claimName"]),
      ),
    );
  }

  #attach(volume: ClaimedVolume): void {
    if (this.#coming.has(volume) || this.#claimOf(volume)?.value["status"] === undefined) return;
    const { store } = this.#registry;
    if (
      store.list("nodes").length === 0 ||
      fieldsAt(this.#claimOf(volume)?.value ?? {}, "status")["phase"] !== "Bound"
    ) {
      return;
    }
    this.#coming.add(volume);
    const name = this.#names.attachment(volume.driver, volume.handle);
    if (store.get("volumeattachments", `/${name}`) === undefined) {
      const spec = { attacher: volume.driver, nodeName: this.#nodeName, source: { persistentVolumeName: volume.name } };
      const object = { apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name }, spec };
      this.#registry.create("volumeattachments", undefined, object);
    }
    const longestMs = this.#isSlow ? slowestAttachMs : longestAttachMs;
    this.#clock.schedule("a volume to be attached", this.#random.integer(50, longestMs), () => {
      const attachment = store.get("volumeattachments", `/${name}`);
      if (attachment === undefined) return void this.#coming.delete(volume);
      if (this.isFull) {
        const { time } = this.#registry;
        const attachError = { time, message: `rpc error: no place for ${volume.name}`, errorCode: resourceExhausted };
        store.put("volumeattachments", attachment.key, {
          ...attachment.value,
          status: { attached: false, attachError },
        });
        return void this.#coming.delete(volume);
      }
      store.put("volumeattachments", attachment.key, {
        ...attachment.value,
        status: { attached: true, attachmentMetadata: { disk: volume.handle } },
      });
      // The Node lists it a little later.
      this.#clock.schedule("the Node to be told what is attached", this.#random.integer(0, 500), () => {
        this.#coming.delete(volume);
        const own = { name: uniqueVolumeName(volume.driver, volume.handle), devicePath: "" };
        this.#tellNode([...this.#attached(), own]);
      });
    });
  }

  #detach(volume: ClaimedVolume): void {
    this.onDetach(volume);
    const name = uniqueVolumeName(volume.driver, volume.handle);
    this.#tellNode(this.#attached().filter((each) => each["name"] !== name));
    this.#registry.store.remove("volumeattachments", `/${this.#names.attachment(volume.driver, volume.handle)}`);
  }

  #attached(): readonly Fields[] {
    const [node] = this.#registry.store.list("nodes");
    return listAt(fieldsAt(node?.value ?? {}, "status"), "volumesAttached");
  }

  #tellNode(volumesAttached: readonly Fields[]): void {
    const { store } = this.#registry;
    const [node] = store.list("nodes");
    if (node === undefined) return;
    const status = { ...fieldsAt(node.value, "status"), volumesAttached };
    store.put("nodes", node.key, { ...node.value, status });
  }

  #claimOf({ claim }: ClaimedVolume): Stored | undefined {
    return this.#registry.store.get("persistentvolumeclaims", `default/${claim}`);
  }
}

function capacityOf(storage: string | undefined): Fields {
  return storage === undefined ? {} : { capacity: { storage } };
}

/** How pods may use it. */
function waysOf({ isBlock, isExclusive }: ClaimedVolume): Fields {
  return {
    accessModes: [isExclusive ? "ReadWriteOncePod" : "ReadWriteMany"],
    volumeMode: isBlock ? "Block" : "Filesystem",
  };
}

/** @param claimUid empty: no claim is bound to it */
function volumeObject(volume: ClaimedVolume, claimUid: string, size: string | undefined): Fields {
  const { name, driver, handle, claim, device, isBlock } = volume;
  const claimRef = { namespace: "default", name: claim, uid: claimUid };
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name },
    spec: {
      ...waysOf(volume),
      ...(device === undefined
        ? { csi: { driver, volumeHandle: handle, ...(!isBlock && { fsType: "ext4" }) } }
        : { local: { path: device } }),
      ...capacityOf(size),
      ...(claimUid !== "" && { claimRef }),
    },
  };
}
