import { deviceVolumes, diskDevice } from "../csi/claimed-volumes.ts";
import type { DriverCall } from "../csi/driver.ts";
import type { DriverVolumes } from "../csi/volumes.ts";
import { mayRun, nameOf, type SimContainer, type WorldChange } from "../world-model.ts";
import type { Break, Rule, RuleMaker, Scene } from "./rule.ts";

const root = "/var/lib/kubelet";
const csiDevices = `${root}/plugins/kubernetes.io/csi/volumeDevices`;
const localDevices = `${root}/plugins/kubernetes.io~local-volume/volumeDevices`;
const localVolumes = "/volumes/kubernetes.io~local-volume/";
const disks = `${root}/plugins/kubernetes.io/local-volume/mounts`;

/** Block volumes, disks of the node, and volumes that one pod at a time may use. */
export const devices: RuleMaker = (scene, broken): Rule => {
  const hasDevices = scene.node.cluster?.storage?.volumes.some(({ isBlock }) => isBlock) ?? false;
  return hasDevices ? new DeviceRules(scene, broken) : {};
};

/** A pod's device, by its link in the pod's directory. */
interface PodDevice {
  readonly link: string;
  readonly uid: string;
  /** Where the driver publishes it; undefined: it has none. */
  readonly target: string | undefined;
  /** Where its bind mount is held by a loop device. */
  readonly held: string;
}

/**
 * Containers have their devices as long as they run, under names that no other device gets; a disk with a file system is
 * never formatted; an exclusive volume has one pod at a time; nothing is left in the end.
 */
class DeviceRules implements Rule {
  readonly #scene: Scene;
  readonly #volumes: DriverVolumes;
  readonly #broken: Break;
  #isWatched = false;

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
    this.#volumes = scene.node.drivers.volumes;
    scene.node.disks.onWork = (device, work) => this.#judgeWork(device, work);
  }

  change({ type, podUid: uid, container }: WorldChange): void {
    if (type !== "started" || container === undefined) return;
    const where = `${uid}/${nameOf(container)}`;
    for (const missing of this.#missingOf(container)) {
      this.#broken("nothing runs without its volumes", `${where} lacks ${missing}`);
    }
  }

  /** Drivers are installed after the rules are made. */
  entry(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    for (const driver of this.#scene.node.drivers.all) driver.onCall((call) => this.#called(call));
  }

  disagreements(): string[] {
    const { world, node } = this.#scene;
    const { desired, loopDevices, mounts } = node;
    const isWanted = (path: string): boolean => desired.has(path.slice(path.lastIndexOf("/") + 1));
    const held = [...loopDevices.held].filter((path) => !isWanted(path));
    const bound = mounts.targets.filter((path) => isBound(path) && !isWanted(path));
    const disk = mounts.targets.find((path) => path.startsWith(disks));
    const isUsed = mounts.targets.some((path) => path.includes(localVolumes));
    const running = [...world.containers.values()].filter(({ state }) => state === "running");
    return [
      ...held.map((path) => `a loop device over ${path} is left`),
      ...bound.map((path) => `${path} is still mounted`),
      ...(disk !== undefined && !isUsed ? [`${disk} is still mounted, and no pod has it`] : []),
      ...running.flatMap((one) => this.#missingOf(one).map((path) => `${nameOf(one)} runs without ${path}`)),
    ];
  }

  async atRest(): Promise<void> {
    const { node } = this.#scene;
    const targets = [...node.mounts.targets, ...this.#volumes.targets];
    const isUsed = (name: string): boolean => targets.some((path) => path.includes(`/${name}/`) || path.endsWith(name));
    for (const directory of [csiDevices, `${csiDevices}/staging`, `${csiDevices}/publish`, localDevices, disks]) {
      for (const { name } of await node.files.list(directory)) {
        const isOwn = deviceVolumes.some((volume) => volume.name === name);
        if (isOwn && !isUsed(name)) this.#broken("unmapping leaves nothing", `${directory}/${name}`);
      }
    }
  }

  #called({ method, volume, target, when }: DriverCall): void {
    if (when !== "begins") return;
    if (method === "publish") this.#judgeExclusive(volume, target);
    if (method !== "unpublish" || !target.startsWith(csiDevices)) return;
    const { world, node } = this.#scene;
    const user = [...world.containers.values()].find((container) => {
      return mayRun(container) && devicesOf(container).some((device) => device.target === target);
    });
    if (user !== undefined) {
      this.#broken("volumes stay while in use", `${target}: taken from ${nameOf(user)}, which runs`);
    }
    const [name = "", uid = ""] = target.split("/").slice(-2);
    const held = `${csiDevices}/${name}/dev/${uid}`;
    if (node.loopDevices.held.has(held) || node.mounts.anyBelow(held) !== undefined) {
      this.#broken("devices are unmapped before they are unpublished", held);
    }
  }

  #judgeWork(device: string, work: "format" | "check"): void {
    const { disks: ofNode, mounts } = this.#scene.node;
    if (work === "format" && ofNode.fileSystemOn(device) !== undefined) {
      this.#broken("a disk with a file system is never formatted", device);
    }
    const user = mounts.targets.find((path) => path.startsWith(disks) || path.includes(localVolumes));
    if (user !== undefined) this.#broken("a disk in use is left alone", `${work} of ${device}, which is at ${user}`);
  }

  /** Only one pod of the node has an exclusive volume, or may have it. */
  #judgeExclusive(handle: string, target: string): void {
    if (!deviceVolumes.some((volume) => volume.isExclusive && volume.handle === handle)) return;
    const other = [...this.#volumes.published].find(([path, one]) => one === handle && path !== target);
    if (other !== undefined) this.#broken("one pod at a time has an exclusive volume", `${target} and ${other[0]}`);
  }

  /** Parts of a container's devices and of its disk that are not there. */
  #missingOf(container: SimContainer): string[] {
    const { mounts, loopDevices, disks: ofNode } = this.#scene.node;
    const parts = devicesOf(container).flatMap(({ link, target, held }) => {
      const isThere = loopDevices.held.has(held) && mounts.anyBelow(held) !== undefined;
      return isThere && (target === undefined || this.#volumes.published.has(target)) ? [] : [link];
    });
    const local = container.config.mounts.filter(({ hostPath }) => hostPath.includes(localVolumes));
    const isWhole = ofNode.fileSystemOn(diskDevice) !== undefined;
    const missing = local.filter(({ hostPath }) => !isWhole || mounts.anyBelow(hostPath) === undefined);
    return [...parts, ...missing.map(({ hostPath }) => hostPath)];
  }
}

function devicesOf({ config }: SimContainer): PodDevice[] {
  return config.devices.flatMap(({ hostPath: link }) => {
    const found = new RegExp(`^${root}/pods/([^/]+)/volumeDevices/kubernetes.io~([^/]+)/([^/]+)$`, "u").exec(link);
    if (found === null) return [];
    const [, uid = "", plugin, name = ""] = found;
    const isCsi = plugin === "csi";
    const target = isCsi ? `${csiDevices}/publish/${name}/${uid}` : undefined;
    return [{ link, uid, target, held: isCsi ? `${csiDevices}/${name}/dev/${uid}` : `${localDevices}/${name}/${uid}` }];
  });
}

/** Whether it is a bind mount of a device, by which it is held. */
function isBound(path: string): boolean {
  return path.startsWith(localDevices) || new RegExp(`^${csiDevices}/[^/]+/dev/`, "u").test(path);
}
