import { WakeableWait } from "../base/wakeable-wait.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { VolumeAttachment } from "../api/volume-attachment.ts";
import type { NodeVolumes } from "../node/node-volumes.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import type { Clock } from "../ports/clock.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { AttachedVolume, AttachmentRequest } from "./volume-plugin.ts";

/** gRPC's RESOURCE_EXHAUSTED. */
const resourceExhausted = 8;
/**
 * Intervals of looks at a VolumeAttachment while the Node does not list the volume. A node may get it, but neither list
 * nor watch it (node authorizer).
 */
const [shortestLookMs, longestLookMs] = [1000, 10_000];
/** Of the time waited so far: what happens late may be seen a little later. */
const lookShare = 0.05;
/** Between the looks of all waiting volumes. */
const leastApartMs = 100;

/** When a VolumeAttachment is read next. Pure. @param waiting volumes that wait, with this one */
export function nextLookMs(waitedMs: number, waiting: number): number {
  const lookMs = Math.min(Math.max(waitedMs * lookShare, shortestLookMs), longestLookMs);
  return Math.max(lookMs, waiting * leastApartMs);
}

/** The driver's volume limit on this node is reached: the pod cannot run here. */
export class AttachLimitError extends VolumeError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AttachLimitError";
  }
}

export interface AttachmentsDependencies {
  readonly clock: Clock;
  readonly node: NodeVolumes;
  readonly storage: StorageLookup;
  /** enableControllerAttachDetach: whether the attach-detach controller attaches this node's volumes. */
  readonly byController: boolean;
}

/** Waits for volumes that drivers' controllers attach to the node. */
export class Attachments {
  readonly #deps: AttachmentsDependencies;
  /** Volumes that wait. */
  #waiting = 0;

  constructor(deps: AttachmentsDependencies) {
    this.#deps = deps;
  }

  /**
   * Waits until the API server lists the volume as in use here, and until it is attached.
   * @param waiting receives the reason for the wait whenever it changes
   * @throws AttachLimitError, VolumeError, or the signal's reason
   */
  async attached(
    request: AttachmentRequest,
    uid: PodUid,
    waiting: (why: string) => void,
    signal: AbortSignal,
  ): Promise<AttachedVolume> {
    const { node, clock } = this.#deps;
    const { volumeName, attachmentName } = request;
    this.#checkSupport();
    node.use(volumeName, uid);
    const wait = new WakeableWait(clock, `volume ${volumeName} to be attached`);
    using _seen = node.onSeen(() => wait.wake());
    const sinceMs = clock.monotonic();
    using _waiting = this.#waits();
    for (;;) {
      const nowMs = clock.monotonic();
      const lookAtMs = nowMs + nextLookMs(nowMs - sinceMs, this.#waiting);
      while (!this.#isListed(volumeName) && clock.monotonic() < lookAtMs) {
        waiting(this.#why(volumeName));
        await wait.for(lookAtMs - clock.monotonic(), signal);
        signal.throwIfAborted();
      }
      const wasListed = this.#isListed(volumeName);
      const attachment = await this.#look(attachmentName, wasListed, signal);
      // The Node may have changed meanwhile.
      const isListed = wasListed && this.#isListed(volumeName);
      if (attachment === undefined) continue;
      const problem = attachmentProblem(attachment, volumeName);
      if (isListed && problem === undefined) return attachedBy(attachment);
      const { limitReached } = request;
      if (limitReached !== undefined && attachment.status?.attachError?.errorCode === resourceExhausted) {
        limitReached();
        throw new AttachLimitError(attachment.status.attachError.message ?? "the driver's volume limit is reached");
      }
      if (problem === undefined) continue;
      if (isListed) throw new VolumeError(problem);
      waiting(problem);
    }
  }

  /**
   * Of a volume that is published here already: upstream reads the VolumeAttachment only, whatever the Node lists.
   * @throws VolumeError, or the signal's reason
   */
  async look({ volumeName, attachmentName }: AttachmentRequest, signal: AbortSignal): Promise<AttachedVolume> {
    this.#checkSupport();
    const attachment = await this.#read(attachmentName, signal);
    const problem = attachmentProblem(attachment, volumeName);
    if (problem !== undefined) throw new VolumeError(problem);
    return attachedBy(attachment);
  }

  #checkSupport(): void {
    if (this.#deps.byController) return;
    const why = "attaching volumes from the kubelet is not supported (enableControllerAttachDetach is false)";
    throw new VolumeError(why);
  }

  #waits(): Disposable {
    this.#waiting++;
    return { [Symbol.dispose]: () => void this.#waiting-- };
  }

  /** The Node lists it as in use and as attached. */
  #isListed(volume: string): boolean {
    const { node } = this.#deps;
    return node.isWritten(volume) && node.isAttached(volume);
  }

  /** @param isListed the Node lists the volume, so that a missing VolumeAttachment is a problem */
  async #look(name: string, isListed: boolean, signal: AbortSignal): Promise<VolumeAttachment | undefined> {
    try {
      return await this.#read(name, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isListed) return undefined;
      throw error;
    }
  }

  async #read(name: string, signal: AbortSignal): Promise<VolumeAttachment> {
    try {
      return await this.#deps.storage.attachment(name, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `GET error for volume attachment ${name}: ${errorMessage(error)}`;
      throw new VolumeError(message, { cause: error });
    }
  }

  #why(volume: string): string {
    return this.#deps.node.isWritten(volume)
      ? "volume is not in the list of VolumesAttached in the node's status"
      : "volume has not been added to the list of VolumesInUse in the node's volume status";
  }
}

function attachedBy({ metadata, status }: VolumeAttachment): AttachedVolume {
  return { attachmentName: metadata.name, metadata: status?.attachmentMetadata ?? {} };
}

/** Why an attachment is not complete; undefined: it is. Pure. */
function attachmentProblem({ metadata, status }: VolumeAttachment, volume: string): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return "volume attachment is being deleted";
  if (status?.attached === true) return undefined;
  const { attachError } = status ?? {};
  return attachError?.message ?? `volume ${volume} is not attached for volume attachment ${metadata.name}`;
}
