import { dnsSubdomainProblem } from "../base/formats.ts";
import type { Hashing } from "../ports/hashing.ts";

/** Upstream's name of the plugin, in metrics and unique names of volumes. */
export const csiPluginName = "kubernetes.io/csi";
/** The same as a file name: the parent of the plugin's volumes of each pod. */
export const csiDirectoryName = "kubernetes.io~csi";

/** A driver's name by the API's rules for CSIDriver: a DNS subdomain of at most 63 characters, in any case. */
export function isDriverName(name: string): boolean {
  return name.length <= 63 && dnsSubdomainProblem(name.toLowerCase()) === undefined;
}

/** How handles and paths are named, as upstream names them. */
export class CsiNames {
  readonly nodeName: string;
  readonly #hashing: Pick<Hashing, "sha256">;
  /** As it is configured. */
  readonly #configuredRoot: string;
  #root: string;

  /** @param rootDirectory the node's, as it is configured */
  constructor(hashing: Pick<Hashing, "sha256">, rootDirectory: string, nodeName: string) {
    this.#hashing = hashing;
    this.#configuredRoot = rootDirectory;
    this.#root = rootDirectory;
    this.nodeName = nodeName;
  }

  get rootDirectory(): string {
    return this.#configuredRoot;
  }

  /** The root directory without links, as the mount table has it. */
  resolve(realRoot: string): void {
    this.#root = realRoot;
  }

  /**
   * A path below the root directory as drivers know it: theirs lead over the root directory as it is configured, which may be a link
   * that a driver's container does not have.
   */
  toldToDrivers(path: string): string {
    return path.startsWith(`${this.#root}/`) ? `${this.#configuredRoot}${path.slice(this.#root.length)}` : path;
  }

  /** `<root>/pods` */
  get pods(): string {
    return `${this.#root}/pods`;
  }

  /** `<root>/plugins/kubernetes.io/csi` */
  get plugin(): string {
    return `${this.#root}/plugins/${csiPluginName}`;
  }

  /** The handle of an inline volume, which its driver makes for the pod. */
  inlineHandle(podUid: string, volumeName: string): string {
    return `csi-${this.#hashing.sha256(`${podUid}${volumeName}`)}`;
  }

  /** The VolumeAttachment of a volume on this node. */
  attachment(driver: string, handle: string): string {
    return `csi-${this.#hashing.sha256(`${handle}${driver}${this.nodeName}`)}`;
  }

  /** The directory of what is staged of a volume: its data file, and `globalmount` below it. */
  staged(driver: string, handle: string): string {
    return `${this.plugin}/${driver}/${this.#hashing.sha256(handle)}`;
  }

  blockStaging(volume: string): string {
    return `${this.plugin}/volumeDevices/staging/${volume}`;
  }

  blockPublishDirectory(volume: string): string {
    return `${this.plugin}/volumeDevices/publish/${volume}`;
  }

  blockPublish(volume: string, podUid: string): string {
    return `${this.blockPublishDirectory(volume)}/${podUid}`;
  }

  blockDirectory(volume: string): string {
    return `${this.plugin}/volumeDevices/${volume}`;
  }

  /** Where the devices of a block volume are bound, one a pod. */
  blockGlobalMap(volume: string): string {
    return `${this.plugin}/volumeDevices/${volume}/dev`;
  }

  blockData(volume: string): string {
    return `${this.plugin}/volumeDevices/${volume}/data`;
  }
}

/** The unique name of a volume of a claim, as `status.volumesInUse` of the Node has it. */
export function uniqueVolumeName(driver: string, handle: string): string {
  return `${csiPluginName}/${driver}^${handle}`;
}
