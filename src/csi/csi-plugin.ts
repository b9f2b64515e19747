import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import { AwaitedError } from "../volumes/awaited-error.ts";
import type { VolumePaths } from "../volumes/volume-paths.ts";
import type {
  AttachmentRequest,
  FoundVolume,
  PreparedVolume,
  ReconstructedVolume,
  VolumePlugin,
} from "../volumes/volume-plugin.ts";
import type { VolumeSpec } from "../volumes/volume-spec.ts";
import { foundVolume, releaseUnpublished } from "./csi-found.ts";
import { CsiVolume } from "./csi-volume.ts";
import type { ClaimedVolume } from "./expansions.ts";
import { csiDirectoryName, uniqueVolumeName } from "./names.ts";
import { csiSource } from "./source.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

/** Volumes of CSI drivers: PersistentVolumes and inline volumes. */
export class CsiPlugin implements VolumePlugin {
  readonly name = csiDirectoryName;
  readonly followsObjects = false;
  readonly supportsMountOptions = true;
  readonly #parts: CsiVolumeParts;

  constructor(parts: CsiVolumeParts) {
    this.#parts = parts;
  }

  owns({ volume, persistentVolume }: VolumeSpec): boolean {
    return persistentVolume === undefined ? volume.csi !== undefined : persistentVolume.spec.csi !== undefined;
  }

  prepare(pod: Pod, spec: VolumeSpec, paths: VolumePaths): PreparedVolume {
    return new CsiVolume(this.#parts, pod, csiSource(spec, pod, this.#parts.names), paths, claimedVolume(pod, spec));
  }

  async attachment(spec: VolumeSpec, signal: AbortSignal): Promise<AttachmentRequest | undefined> {
    const csi = spec.persistentVolume?.spec.csi;
    if (csi === undefined) return undefined;
    const { objects, names, limitReached, place } = this.#parts;
    await objects.get(csi.driver, signal);
    // At the same moment: no change is missed.
    const [driver, changed] = [objects.peek(csi.driver), objects.nextChange];
    if (driver === undefined && place !== undefined) throw this.#withoutObject(csi.driver);
    if (driver?.spec.attachRequired === false) return undefined;
    return {
      volumeName: uniqueVolumeName(csi.driver, csi.volumeHandle),
      handle: csi.volumeHandle,
      attachmentName: names.attachment(csi.driver, csi.volumeHandle),
      limitReached:
        (driver?.spec.nodeAllocatableUpdatePeriodSeconds ?? 0) > 0 ? () => limitReached(csi.driver) : undefined,
      changed,
    };
  }

  /** Without a cluster: by default volumes are attached, which nothing does there. */
  #withoutObject(driver: string): AwaitedError {
    const { drivers, objects } = this.#parts;
    const registered = drivers.has(driver) ? "" : ", and the driver is not registered on this node";
    const remedy = "give 'podwright run' its document, with attachRequired: false";
    return new AwaitedError(`driver ${driver} has no CSIDriver object: ${remedy}${registered}`, objects.nextChange);
  }

  async reconstruct(found: FoundVolume): Promise<ReconstructedVolume | undefined> {
    return await foundVolume(this.#parts, found);
  }

  setUpsEnded(uid: PodUid, found: ReadonlySet<string>): void {
    releaseUnpublished(this.#parts, uid, found);
  }
}

/** Undefined: it has no claim. */
function claimedVolume(pod: Pod, { persistentVolume, claim, readOnly }: VolumeSpec): ClaimedVolume | undefined {
  const csi = persistentVolume?.spec.csi;
  if (persistentVolume === undefined || claim === undefined || csi === undefined) return undefined;
  return { unique: uniqueVolumeName(csi.driver, csi.volumeHandle), pod, persistentVolume, claim, readOnly };
}
