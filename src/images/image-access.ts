import { errorMessage } from "../base/errors.ts";
import { formatTime } from "../base/time.ts";
import { Turns } from "../base/turns.ts";
import type { AccessJudgement, Observer } from "../journal/observer.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Logger } from "../ports/log.ts";
import { imageRecordDirectory, imageRecordName, isImageRecord, maxRecordBytes } from "./image-records.ts";
import { type PullEnd, PullIntents } from "./pull-intents.ts";
import {
  decodePulledRecord,
  encodePulledRecord,
  mustVerify,
  type PodCredential,
  provenAccess,
  type PulledImageUse,
  type PulledRecord,
  type VerificationPolicy,
  withAccess,
} from "./pull-record.ts";

export interface ImageAccessDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly hashing: Hashing;
  readonly log: Logger;
  readonly observer?: Pick<Observer, "accessJudged"> | undefined;
}

/** An image on the node, with all its names. */
export interface PresentImage {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
}

/** Bad: it cannot be decoded. Unreadable: it may be fine, and is read again. */
type Found = PulledRecord | "bad" | "unreadable" | null;

/**
 * Records the credentials that images were pulled with, so that a pod uses only images that it could pull itself
 * (KEP-2535, upstream's image pull manager). The records are files in the Go kubelet's layout below
 * `{root-dir}/image_manager`.
 */
export class ImageAccess {
  readonly #deps: ImageAccessDependencies;
  readonly #policy: VerificationPolicy;
  /** Of the records. */
  readonly #directory: string;
  readonly #intents: PullIntents;
  /** By image ID; null: none. */
  readonly #records = new Map<string, Exclude<Found, "unreadable">>();
  /** Image IDs whose record is newer than its file. */
  readonly #unwritten = new Set<string>();
  /** By file name: a record is read, written and removed in turn. */
  readonly #turns = new Turns();
  /** The last pull of images in this run, monotonic ms, by image ID: not every pull changes the record. */
  readonly #pulledAt = new Map<string, number>();

  /** @param rootDirectory `/var/lib/kubelet` */
  constructor(deps: ImageAccessDependencies, policy: VerificationPolicy, rootDirectory: string) {
    this.#deps = deps;
    this.#policy = policy;
    this.#directory = `${rootDirectory}/${imageRecordDirectory}/pulled`;
    this.#intents = new PullIntents(deps, `${rootDirectory}/${imageRecordDirectory}/pulling`);
  }

  /** False: nothing is verified or recorded. */
  get isOn(): boolean {
    return this.#policy.policy !== "Off";
  }

  /**
   * Whether a pod may use a present image without a registry check. An unreadable record proves nothing, whatever the
   * policy.
   * @param image the name in the pod's spec
   * @param credentials the pod's registry credentials, read only when needed
   */
  async isProven(
    image: string,
    present: PresentImage,
    credentials: () => Promise<readonly PodCredential[]>,
  ): Promise<boolean> {
    if (!this.isOn) return true;
    let judgement: AccessJudgement = "error";
    try {
      judgement = await this.#judge(image, present, credentials);
    } finally {
      this.#deps.observer?.accessJudged(judgement);
    }
    return judgement === "credentialPolicyAllowed" || judgement === "credentialRecordFound";
  }

  async #judge(
    image: string,
    present: PresentImage,
    credentials: () => Promise<readonly PodCredential[]>,
  ): Promise<AccessJudgement> {
    const record = await this.#record(present.id);
    const names = [image, ...present.repoTags, ...present.repoDigests];
    const wasPulling = record === null ? await this.#intents.has(names) : false;
    if (record === "bad" || record === "unreadable" || wasPulling === "unknown") return "error";
    const byKubelet = record !== null || wasPulling;
    if (!mustVerify(this.#policy, image, byKubelet)) return "credentialPolicyAllowed";
    if (record === null) return "mustAuthenticate";
    const proof = provenAccess(record, image, []) ?? provenAccess(record, image, await credentials());
    if (proof === undefined) return "mustAuthenticate";
    if (proof !== "node") await this.#remember({ image, imageRef: present.id, with: proof, looked: true });
    return "credentialRecordFound";
  }

  /**
   * Marks the start of a pull with a pod's credentials: if podwright is killed during the pull, the image must not
   * count as everybody's.
   * @throws Error when the marker cannot be written
   */
  async pulling(image: string): Promise<void> {
    if (!this.isOn) return;
    try {
      await this.#intents.begin(image);
    } catch (error) {
      throw new Error(`failed to record image pull intent: ${errorMessage(error)}`, { cause: error });
    }
  }

  /** Ends a marked pull. */
  async settled(image: string, end: PullEnd): Promise<void> {
    if (this.isOn) await this.#intents.end(image, end);
  }

  /**
   * Records a pull.
   * @returns false when the record cannot be read or written: the registry is then checked again, or is after a restart
   */
  async pulled(use: PulledImageUse): Promise<boolean> {
    if (!this.isOn) return true;
    this.#pulledAt.set(use.imageRef, this.#deps.clock.monotonic());
    // Written over, it would lose what else gives access.
    if ((await this.#record(use.imageRef)) === "unreadable") return false;
    return await this.#remember(use);
  }

  /** Whether a kubelet of this node pulled the image, according to the records. */
  async isPulled(image: PresentImage): Promise<boolean> {
    for (const reference of referencesOf(image)) {
      if (isRecord(await this.#record(reference))) return true;
    }
    return false;
  }

  /**
   * Deletes the records of removed images. Never rejects.
   * @param present all images of the runtime, listed after `beganMs`
   * @param beganMs monotonic; the list may lack images pulled since then
   * @returns whether none is left; otherwise another call retries
   */
  async prune(present: readonly PresentImage[], beganMs: number): Promise<boolean> {
    if (!this.isOn) return true;
    const { files, log } = this.#deps;
    const kept = new Set(present.flatMap(referencesOf).map((reference) => this.#fileName(reference)));
    let isDone = true;
    const failed = (path: string, error: unknown): void => {
      // What fails for one usually fails for all.
      if (isDone) log.warn("cannot remove records of images that are gone", { path, error: errorMessage(error) });
      isDone = false;
    };
    const entries = await files.list(this.#directory).catch((error: unknown) => {
      failed(this.#directory, error);
      return [];
    });
    for (const { name } of entries) {
      if (!isImageRecord(name) || kept.has(name)) continue;
      await this.#forget(name, beganMs).catch((error: unknown) => failed(`${this.#directory}/${name}`, error));
    }
    // That nothing is recorded of an image is not worth remembering once it is gone.
    for (const [imageRef, found] of this.#records) {
      if (found === null && !kept.has(this.#fileName(imageRef))) this.#records.delete(imageRef);
    }
    return isDone;
  }

  /** @throws FileError when the record cannot be read or removed */
  async #forget(name: string, beganMs: number): Promise<void> {
    using _turn = await this.#turns.take(name);
    const { files, log } = this.#deps;
    const path = `${this.#directory}/${name}`;
    const bytes = await files.read(path, maxRecordBytes).catch(absent);
    if (bytes === undefined) return;
    const imageRef = imageOf(bytes);
    if (imageRef === undefined || this.#fileName(imageRef) !== name) {
      log.warn("an image pull record cannot be decoded and stays", { path });
      return;
    }
    if ((this.#pulledAt.get(imageRef) ?? -Infinity) >= beganMs) return;
    // Before the removal: a pull that ends during it starts a new record, which is written afterwards.
    this.#pulledAt.delete(imageRef);
    this.#unwritten.delete(imageRef);
    this.#records.set(imageRef, null);
    try {
      await files.remove(path);
    } finally {
      if (this.#records.get(imageRef) === null) this.#records.delete(imageRef);
    }
  }

  async #remember(use: PulledImageUse): Promise<boolean> {
    const { imageRef } = use;
    const known = this.#records.get(imageRef);
    const before = known === "bad" || known === null ? undefined : known;
    const record = withAccess(before, use, formatTime(this.#deps.clock.now()));
    if (record !== before) {
      this.#records.set(imageRef, record);
      this.#unwritten.add(imageRef);
    }
    return await this.#write(imageRef);
  }

  async #write(imageRef: string): Promise<boolean> {
    if (!this.#unwritten.has(imageRef)) return true;
    const { files, log } = this.#deps;
    const name = this.#fileName(imageRef);
    using _turn = await this.#turns.take(name);
    const record = this.#records.get(imageRef);
    // Another write may have had it.
    if (!this.#unwritten.has(imageRef) || !isRecord(record)) return true;
    try {
      await files.makeDirectory(this.#directory, 0o700);
      await files.writeAtomic(`${this.#directory}/${name}`, encodePulledRecord(record), 0o600);
      if (this.#records.get(imageRef) === record) this.#unwritten.delete(imageRef);
      return true;
    } catch (error) {
      log.warn("cannot store the image pull record", { imageRef, error: errorMessage(error) });
      return false;
    }
  }

  async #record(imageRef: string): Promise<Found> {
    const known = this.#records.get(imageRef);
    if (known !== undefined) return known;
    using _turn = await this.#turns.take(this.#fileName(imageRef));
    // Another caller may have read or replaced it.
    const since = this.#records.get(imageRef);
    if (since !== undefined) return since;
    const read = await this.#read(imageRef);
    if (read !== "unreadable") this.#records.set(imageRef, read);
    return read;
  }

  async #read(imageRef: string): Promise<Found> {
    const path = `${this.#directory}/${this.#fileName(imageRef)}`;
    try {
      const bytes = await this.#deps.files.read(path, maxRecordBytes);
      const record = decodePulledRecord(new TextDecoder().decode(bytes));
      return record.imageRef === imageRef ? record : null;
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return null;
      this.#deps.log.warn("cannot read an image pull record; verifying at the registry", {
        path,
        error: errorMessage(error),
      });
      return error instanceof FileError && error.code !== "EFBIG" ? "unreadable" : "bad";
    }
  }

  #fileName(name: string): string {
    return imageRecordName(this.#deps.hashing, name);
  }
}

function isRecord(found: Found | undefined): found is PulledRecord {
  return typeof found === "object" && found !== null;
}

/** Undefined for a file that is gone. */
function absent(error: unknown): undefined {
  if (!(error instanceof FileError && error.code === "ENOENT")) throw error;
}

/** The image that an encoded record is about; undefined: it cannot be decoded. */
function imageOf(bytes: Uint8Array): string | undefined {
  try {
    return decodePulledRecord(new TextDecoder().decode(bytes)).imageRef;
  } catch {
    return undefined;
  }
}

/** The names by which a record may refer to the image. */
function referencesOf({ id, repoTags, repoDigests }: PresentImage): string[] {
  return [id, ...repoDigests, ...repoTags];
}
