import type { Pod } from "../api/pod.ts";
import type { VolumeAttachment } from "../api/volume-attachment.ts";
import { causeOf, errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { onSettled } from "../base/settling.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { NodeVolumes } from "../node/node-volumes.ts";
import { type StorageLookup, StorageLookupError } from "../objects/storage-lookup.ts";
import type { Clock } from "../ports/clock.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { failedAttempt, limitProblem } from "./attach-limit.ts";
import type { AttachedVolume, AttachmentRequest } from "./volume-plugin.ts";

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

/** A pod's volume that is to be attached. */
export interface WantedAttachment {
  readonly pod: Pod;
  /** What its plugin wants attached, asked again when that may have changed; undefined: nothing. */
  readonly request: () => Promise<AttachmentRequest | undefined>;
  /** Receives the reason for the wait whenever it changes. */
  readonly waiting: (why: string) => void;
}

/** Waits for volumes that drivers' controllers attach to the node. */
export class Attachments {
  readonly #deps: AttachmentsDependencies;
  /** Volumes that wait. */
  #waiting = 0;

  constructor(deps: AttachmentsDependencies) {
    this.#deps = deps;
  }

  /** enableControllerAttachDetach. */
  get byController(): boolean {
    return this.#deps.byController;
  }

  /**
   * Waits until the API server lists the volume as in use here, and until it is attached, or need not be attached.
   * @throws AttachLimitError, VolumeError, the request's error, or the signal's reason
   */
  async attached(
    { pod, request, waiting }: WantedAttachment,
    signal: AbortSignal,
  ): Promise<AttachedVolume | undefined> {
    const { node, clock } = this.#deps;
    const { uid } = pod.metadata;
    const first = await request();
    if (first === undefined) return undefined;
    this.#checkSupport();
    const { volumeName } = first;
    node.use(volumeName, uid);
    const wait = new WakeableWait(clock, `volume ${volumeName} to be attached`);
    using _seen = node.onSeen(() => wait.wake());
    using present = new PresentRequest(first, request, () => wait.wake());
    using _waiting = this.#waits();
    const looks = new Looks(pod);
    const sinceMs = clock.monotonic();
    for (;;) {
      const nowMs = clock.monotonic();
      const lookAtMs =
        present.limitReached && looks.isFirst ? nowMs : nowMs + nextLookMs(nowMs - sinceMs, this.#waiting);
      while (!this.#isListed(volumeName) && clock.monotonic() < lookAtMs) {
        waiting(looks.problem ?? this.#why(volumeName));
        await wait.for(lookAtMs - clock.monotonic(), signal);
        signal.throwIfAborted();
        if (!(await present.isStillWanted())) return this.#unwanted(volumeName, uid);
      }
      const wasListed = this.#isListed(volumeName);
      const found = await this.#look(first, wasListed, signal);
      if (!(await present.isStillWanted())) return this.#unwanted(volumeName, uid);
      // The Node may have changed meanwhile.
      const isListed = wasListed && this.#isListed(volumeName);
      const { attached, limit } = looks.seen(found, first);
      if (isListed && attached !== undefined) return attached;
      const { limitReached } = present;
      if (limitReached !== undefined && limit !== undefined) {
        limitReached();
        throw new AttachLimitError(limit);
      }
      if (isListed && looks.problem !== undefined) throw new VolumeError(looks.problem);
    }
  }

  /** What the Node lists as attached may be mounted, and must not be detached before the pod's volumes are removed. */
  #unwanted(volume: string, uid: PodUid): undefined {
    const { node } = this.#deps;
    if (!node.isAttached(volume)) node.release(volume, uid);
  }

  /**
   * Of a volume that is published here already: upstream reads the VolumeAttachment only, whatever the Node lists.
   * @throws VolumeError, or the signal's reason
   */
  async look(request: AttachmentRequest, signal: AbortSignal): Promise<AttachedVolume> {
    this.#checkSupport();
    const attachment = await this.#read(request, signal);
    const problem = attachmentProblem(attachment, request);
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
  async #look(request: AttachmentRequest, isListed: boolean, signal: AbortSignal): Promise<Look> {
    try {
      return await this.#read(request, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (isListed) throw error;
      return causeOf(error, StorageLookupError)?.isMissing === true ? "missing" : "unknown";
    }
  }

  async #read({ attachmentName, handle }: AttachmentRequest, signal: AbortSignal): Promise<VolumeAttachment> {
    try {
      return await this.#deps.storage.attachment(attachmentName, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `volume ${handle} has GET error for volume attachment ${attachmentName}: ${errorMessage(error)}`;
      throw new VolumeError(message, { cause: error });
    }
  }

  #why(volume: string): string {
    return this.#deps.node.isWritten(volume)
      ? "volume is not in the list of VolumesAttached in the node's status"
      : "volume has not been added to the list of VolumesInUse in the node's volume status";
  }
}

/** The request for a volume that waits: computed anew whenever what it comes from has changed. */
class PresentRequest implements Disposable {
  readonly #ask: WantedAttachment["request"];
  readonly #onChange: () => void;
  #request: AttachmentRequest;
  #isOutdated = false;
  #listening: Disposable | undefined;

  constructor(request: AttachmentRequest, ask: WantedAttachment["request"], onChange: () => void) {
    this.#ask = ask;
    this.#onChange = onChange;
    this.#request = request;
    this.#listen();
  }

  get limitReached(): AttachmentRequest["limitReached"] {
    return this.#request.limitReached;
  }

  /** @throws the request's error */
  async isStillWanted(): Promise<boolean> {
    while (this.#isOutdated) {
      this.#isOutdated = false;
      const request = await this.#ask();
      if (request === undefined) return false;
      this.#request = request;
      this.#listen();
    }
    return true;
  }

  [Symbol.dispose](): void {
    this.#listening?.[Symbol.dispose]();
  }

  #listen(): void {
    this.#listening?.[Symbol.dispose]();
    const { changed } = this.#request;
    this.#listening =
      changed &&
      onSettled(changed, () => {
        this.#isOutdated = true;
        this.#onChange();
      });
  }
}

/** What the API server has of a VolumeAttachment. */
type Look = VolumeAttachment | "missing" | "unknown";

/** What a pod's wait has seen of its VolumeAttachment. */
class Looks {
  /** Why the attachment is not complete, as seen last; undefined: it is, or there is none. */
  problem: string | undefined;
  isFirst = true;
  readonly #created: string | undefined;
  /** The failed attempt that was there at first. */
  #firstAttempt: string | undefined;

  constructor({ metadata }: Pod) {
    this.#created = metadata.creationTimestamp;
  }

  /** @returns limit: the node has no place for the volume, if the driver has such a limit */
  seen(look: Look, request: AttachmentRequest): { readonly attached?: AttachedVolume; readonly limit?: string } {
    this.isFirst = false;
    this.problem = undefined;
    if (look === "missing") this.#firstAttempt ??= "";
    if (look === "missing" || look === "unknown") return {};
    this.problem = attachmentProblem(look, request);
    const limit = limitProblem(look, this.#created, this.#firstAttempt);
    this.#firstAttempt ??= failedAttempt(look);
    if (this.problem === undefined) return { attached: attachedBy(look) };
    return limit === undefined ? {} : { limit };
  }
}

function attachedBy({ metadata, status }: VolumeAttachment): AttachedVolume {
  return { attachmentName: metadata.name, metadata: status?.attachmentMetadata ?? {} };
}

/** Why an attachment is not complete; undefined: it is. Pure. */
function attachmentProblem(
  { metadata, status }: VolumeAttachment,
  { handle }: Pick<AttachmentRequest, "handle">,
): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return "volume attachment is being deleted";
  if (status?.attached === true) return undefined;
  const { attachError } = status ?? {};
  return attachError?.message ?? `volume ${handle} is not attached for volume attachment ${metadata.name}`;
}
