import { isStaticPod } from "../../api/pod-kind.ts";
import { uniqueVolumeName } from "../../csi/names.ts";
import type { DriverCall } from "../csi/driver.ts";
import type { SimStorage } from "../csi/storage.ts";
import { fieldsAt, listAt } from "../api-server/values.ts";
import { simHashing } from "../hashing.ts";
import { devicesDirectory, devicesName, recordOf, stagedDirectory } from "../csi/record-paths.ts";
import type { DriverVolumes } from "../csi/volumes.ts";
import { mayRun, nameOf, type SimContainer, type WorldChange } from "../world-model.ts";
import type { Break, Rule, RuleMaker, Scene } from "./rule.ts";
import { isUnrecorded } from "./unrecorded.ts";

const podsDirectory = "/var/lib/kubelet/pods";
/** Two syncs, and a little. */
const republishedWithinMs = 200_000;

/** The legal calls of CSI drivers, and the Node's volumes in use. */
export const drivers: RuleMaker = (scene, broken): Rule => {
  const { cluster } = scene.node;
  return cluster?.storage === undefined ? {} : new DriverRules(scene, cluster.storage, broken);
};

/**
 * CSI volumes are staged, published, unpublished and unstaged in this order, whatever the outcomes of calls; containers
 * have them as long as they run; whatever may be mounted has a record on disk, and the Node lists it as in use.
 */
class DriverRules implements Rule {
  readonly #scene: Scene;
  readonly #storage: SimStorage;
  readonly #volumes: DriverVolumes;
  readonly #broken: Break;
  /** When each target was published last, simulated ms. */
  readonly #publishedMs = new Map<string, number>();
  #isWatched = false;

  constructor(scene: Scene, storage: SimStorage, broken: Break) {
    this.#scene = scene;
    this.#storage = storage;
    this.#broken = broken;
    this.#volumes = scene.node.drivers.volumes;
    this.#volumes.onViolation = broken;
    storage.onDetach = ({ handle }) => {
      if (this.#isHere(handle)) this.#broken("volumes in use are not detached", `${handle} is detached`);
    };
  }

  change({ type, podUid: uid, container }: WorldChange): void {
    if (type !== "started" || container === undefined) return;
    for (const path of volumesOf(container)) {
      const isThere = this.#volumes.published.has(path);
      if (!isThere) this.#broken("nothing runs without its volumes", `${uid}/${nameOf(container)} lacks ${path}`);
    }
  }

  entry(): void {
    this.#watch();
    this.#judgeRecords();
  }

  disagreements(): string[] {
    const { node } = this.#scene;
    const isOver = (uid: string): boolean => !node.desired.has(uid) && !isUnrecorded(node, uid);
    const staged = [...this.#volumes.staged].filter(
      ([volume]) => ![...this.#volumes.published.values()].includes(volume),
    );
    const published = [...this.#volumes.published.keys()].filter((target) => isOver(uidOf(target)));
    return [
      ...staged.map(([volume]) => `${volume} is still staged, and no pod has it`),
      ...published.map((target) => `${target} is still published`),
      ...this.#inUseProblems(),
      ...this.#unpublishedDrivers(),
      ...this.#smallVolumes(),
      ...this.#missing(),
    ];
  }

  async atRest(): Promise<void> {
    this.#judgeRepublished();
    const { files, foreignVolumes } = this.#scene.node;
    if (foreignVolumes.areMounted) return;
    for (const { name: driver } of await files.list(stagedDirectory)) {
      if (driver === devicesName) continue;
      for (const { name } of await files.list(`${stagedDirectory}/${driver}`)) {
        const path = `${stagedDirectory}/${driver}/${name}`;
        const isStaged = [...this.#volumes.staged.values()].some((target) => target.startsWith(`${path}/`));
        if (!isStaged) this.#broken("unstaging leaves nothing", path);
      }
    }
  }

  /** Drivers are installed after the rules are made. */
  #watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    for (const driver of this.#scene.node.drivers.all) driver.onCall((call) => this.#called(call));
  }

  #called({ method, volume, target, when }: DriverCall): void {
    this.#judgeRecords();
    if (when !== "begins") return;
    if (method === "publish") this.#publishedMs.set(target, this.#scene.clock.nowMs);
    if (method === "stage" || method === "publish") this.#comes(volume);
    if (method !== "unpublish") return;
    const user = [...this.#scene.world.containers.values()].find((container) => {
      return mayRun(container) && volumesOf(container).includes(target);
    });
    if (user === undefined) return;
    this.#broken("volumes stay while in use", `${target}: taken from ${nameOf(user)}, which runs`);
  }

  /** Before the first call for a volume, it is attached and the Node lists it as in use. */
  #comes(handle: string): void {
    const volume = this.#storage.volumes.find((each) => each.handle === handle && each.isAttached);
    if (volume === undefined) return;
    if (!this.#storage.isAttached(volume)) this.#broken("mounted volumes are attached", handle);
    if (!this.#storage.inUse.includes(uniqueVolumeName(volume.driver, handle))) {
      this.#broken("mounted volumes are in use", handle);
    }
  }

  /** Each path on which something is mounted has its record, by which it is found again. */
  #judgeRecords(): void {
    const { files } = this.#scene.node;
    for (const target of this.#volumes.targets) {
      const record = recordOf(target);
      if (files.ownerOf(record) === undefined) this.#broken("possible mounts have records", target);
    }
    const damaged = this.#volumes.damaged();
    if (damaged !== undefined) this.#broken("nothing mounted is removed", damaged);
  }

  /** The Node lists exactly the attached volumes that are mounted. */
  #inUseProblems(): string[] {
    return this.#storage.volumes.flatMap(({ isAttached, driver, handle }) => {
      if (!isAttached) return [];
      const isInUse = this.#storage.inUse.includes(uniqueVolumeName(driver, handle));
      if (isInUse === this.#volumes.isMounted(handle) || (isInUse && this.#isKept(driver, handle))) return [];
      return [isInUse ? `the Node still calls ${handle} in use` : `the Node does not call ${handle} in use`];
    });
  }

  /** Beside a mount that nobody knows: something may be published from a volume that was staged before a power failure. */
  #isKept(driver: string, handle: string): boolean {
    const { files, foreignVolumes } = this.#scene.node;
    const record = `${stagedDirectory}/${driver}/${simHashing.sha256(handle)}/vol_data.json`;
    return foreignVolumes.areMounted && files.ownerOf(record) !== undefined;
  }

  /** Claims of running pods whose volumes have grown, and that do not say so. */
  #smallVolumes(): string[] {
    const used = new Set(this.#volumes.published.values());
    return this.#storage.volumes.flatMap((volume) => {
      const size = this.#storage.sizeOf(volume);
      const status = this.#storage.claimStatus(volume);
      const { storage = "" } = fieldsAt(status, "capacity");
      const bytes = this.#volumes.sizes.get(volume.handle) ?? 0n;
      if (this.#storage.isExpanded(volume) && bytes !== BigInt(Number.parseInt(String(storage), 10)) << 30n) {
        return [`${volume.claim} has ${String(storage)}, and its volume ${bytes} bytes`];
      }
      if (size === undefined || status["phase"] !== "Bound") return [];
      if (!used.has(volume.handle) || storage === size) return [];
      const { storage: resize } = fieldsAt(status, "allocatedResourceStatuses");
      return resize === "NodeResizeInfeasible" ? [] : [`${volume.claim} has ${String(storage)} of ${size}`];
    });
  }

  /** Drivers that registered and that the node's CSINode does not list as they are. */
  #unpublishedDrivers(): string[] {
    const { cluster, drivers: own } = this.#scene.node;
    const [csiNode] = cluster?.server.registry.store.list("csinodes") ?? [];
    const listed = listAt(fieldsAt(csiNode?.value ?? {}, "spec"), "drivers");
    return own.all.flatMap(({ kind: { name }, place: { nodeId, topology } }) => {
      const entry = listed.find((each) => each["name"] === name);
      if (entry === undefined) return [`CSINode lacks ${name}`];
      const isSame = entry["nodeID"] === nodeId && String(entry["topologyKeys"]) === String(Object.keys(topology));
      return isSame ? [] : [`CSINode has another node ID or other topology keys of ${name}`];
    });
  }

  /** A volume with requiresRepublish is republished as long as its pod runs. */
  #judgeRepublished(): void {
    const { world, clock } = this.#scene;
    const old = clock.nowMs - republishedWithinMs;
    for (const container of world.containers.values()) {
      if (container.state !== "running" || container.startedMs > old) continue;
      const targets = volumesOf(container).filter((path) => path.endsWith("/inline/mount"));
      const late = targets.find((target) => (this.#publishedMs.get(target) ?? 0) < old);
      if (late !== undefined) this.#broken("volumes are published again", late);
    }
  }

  /** Volumes of containers that run. */
  #missing(): string[] {
    const { world, node } = this.#scene;
    return [...world.containers.values()].flatMap((container) => {
      const pod = node.desired.get(container.config.labels["io.kubernetes.pod.uid"] ?? "");
      if (container.state !== "running" || pod === undefined || isStaticPod(pod)) return [];
      const missing = volumesOf(container).filter((path) => !this.#volumes.published.has(path));
      return missing.map((path) => `${nameOf(container)} of ${pod.metadata.uid} runs without ${path}`);
    });
  }

  /** Mounted, or perhaps soon. */
  #isHere(handle: string): boolean {
    return this.#volumes.isMounted(handle) || this.#scene.node.drivers.all.some((driver) => driver.isBusy(handle));
  }
}

/** Paths of the drivers' volumes that a container has, without the parts below them. */
function volumesOf({ config }: SimContainer): string[] {
  return config.mounts.flatMap(({ hostPath }) => {
    const found = new RegExp(`^${podsDirectory}/[^/]+/volumes/kubernetes.io~csi/[^/]+/mount`, "u").exec(hostPath);
    return found === null ? [] : [found[0]];
  });
}

function uidOf(target: string): string {
  if (target.startsWith(devicesDirectory)) return target.slice(target.lastIndexOf("/") + 1);
  return target.slice(podsDirectory.length + 1).split("/")[0] ?? "";
}
