import { driverNameProblem } from "../base/formats.ts";
import type { Hashing } from "../ports/hashing.ts";

/** Upstream's name of the plugin, in metrics and unique volume names. */
export const csiPluginName = "kubernetes.io/csi";
/** Its form in paths: the parent directory of the plugin's volumes of each pod. */
export const csiDirectoryName = "kubernetes.io~csi";
/** Where block volumes are staged, below the plugin's directory. */
const stagedBlockDirectory = "volumeDevices/staging";
/** Where they are published, below the plugin's directory. */
const publishedBlockDirectory = "volumeDevices/publish";

/** The API's rules for a CSIDriver name: a DNS subdomain of at most 63 characters, in any case. */
export function isDriverName(name: string): boolean {
  return driverNameProblem(name) === undefined;
}

/** Handles and paths, with upstream's names. */
export class CsiNames {
  readonly nodeName: string;
  readonly #hashing: Pick<Hashing, "sha256">;
  /** As configured. */
  readonly #configuredRoot: string;
  #root: string;

  /** @param rootDirectory the node's, as configured */
  constructor(hashing: Pick<Hashing, "sha256">, rootDirectory: string, nodeName: string) {
    this.#hashing = hashing;
    this.#configuredRoot = rootDirectory;
    this.#root = rootDirectory;
    this.nodeName = nodeName;
  }

  get rootDirectory(): string {
    return this.#configuredRoot;
  }

  /** Sets the root directory without links, as in the mount table. */
  resolve(realRoot: string): void {
    this.#root = realRoot;
  }

  /**
   * A path below the root directory for drivers: based on the configured root directory, because a driver's container
   * may lack the target of a link in it.
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

  /** The handle of an inline volume, which its driver creates for the pod. */
  inlineHandle(podUid: string, volumeName: string): string {
    return `csi-${this.#hashing.sha256(`${podUid}${volumeName}`)}`;
  }

  /** The VolumeAttachment of a volume on this node. */
  attachment(driver: string, handle: string): string {
    return `csi-${this.#hashing.sha256(`${handle}${driver}${this.nodeName}`)}`;
  }

  /** The directory of a staged volume: its data file, and `globalmount` below it. */
  staged(driver: string, handle: string): string {
    return `${this.plugin}/${driver}/${this.#hashing.sha256(handle)}`;
  }

  get blockStagings(): string {
    return `${this.plugin}/${stagedBlockDirectory}`;
  }

  blockStaging(volume: string): string {
    return `${this.blockStagings}/${volume}`;
  }

  blockPublishDirectory(volume: string): string {
    return `${this.plugin}/${publishedBlockDirectory}/${volume}`;
  }

  blockPublish(volume: string, podUid: string): string {
    return `${this.blockPublishDirectory(volume)}/${podUid}`;
  }

  blockDirectory(volume: string): string {
    return `${this.plugin}/volumeDevices/${volume}`;
  }

  /** Where a block volume's devices are bind-mounted, one per pod. */
  blockGlobalMap(volume: string): string {
    return `${this.plugin}/volumeDevices/${volume}/dev`;
  }

  /** Where something of a block volume may be mounted. The directory of one named `staging` holds those of others. */
  blockPlaces(volume: string): readonly string[] {
    return [this.blockStaging(volume), this.blockPublishDirectory(volume), this.blockGlobalMap(volume)];
  }

  blockData(volume: string): string {
    return `${this.plugin}/volumeDevices/${volume}/data`;
  }
}

/** The unique name of a claim's volume, as in the Node's `status.volumesInUse`. */
export function uniqueVolumeName(driver: string, handle: string): string {
  return `${csiPluginName}/${driver}^${handle}`;
}

/** Undefined: it is not a CSI driver's volume. */
export function parseUniqueVolumeName(unique: string): { driver: string; handle: string } | undefined {
  const [driver = "", ...handle] = unique.slice(csiPluginName.length + 1).split("^");
  const isCsi = unique.startsWith(`${csiPluginName}/`) && isDriverName(driver) && handle.length > 0;
  return isCsi ? { driver, handle: handle.join("^") } : undefined;
}
