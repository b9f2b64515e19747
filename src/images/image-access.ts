import { errorMessage } from "../base/errors.ts";
import { formatTime } from "../base/time.ts";
import type { AccessJudgement, Observer } from "../journal/observer.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Logger } from "../ports/log.ts";
import { imageRecordDirectory, isImageRecord } from "./image-records.ts";
import {
  decodePulledRecord,
  decodePullIntent,
  encodePulledRecord,
  encodePullIntent,
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

interface Intents {
  /** Number of pulls in progress by image. */
  readonly counts: Map<string, number>;
  /** Names of unreadable files. */
  readonly bad: ReadonlySet<string>;
}

const maxBytes = 16 * 1024 * 1024;

/**
 * Records the credentials that images were pulled with, so that a pod uses only images that it could pull itself
 * (KEP-2535, upstream's image pull manager). The records are files in the Go kubelet's layout below
 * `{root-dir}/image_manager`.
 */
export class ImageAccess {
  readonly #deps: ImageAccessDependencies;
  readonly #policy: VerificationPolicy;
  readonly #directory: string;
  /** By image ID; null: none, "bad": unreadable. */
  readonly #records = new Map<string, PulledRecord | "bad" | null>();
  /** Markers of images being pulled with a pod's credential, now or when an earlier run ended. */
  #intents: Promise<Intents> | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** The last pull of images in this run, monotonic ms, by image ID: not every pull changes the record. */
  readonly #pulledAt = new Map<string, number>();

  /** @param rootDirectory `/var/lib/kubelet` */
  constructor(deps: ImageAccessDependencies, policy: VerificationPolicy, rootDirectory: string) {
    this.#deps = deps;
    this.#policy = policy;
    this.#directory = `${rootDirectory}/${imageRecordDirectory}`;
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
    const wasPulling = record === null ? await this.#wasPulling(names) : false;
    if (record === "bad" || wasPulling === "unknown") return "error";
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
    const { files } = this.#deps;
    let counts: Map<string, number>;
    try {
      ({ counts } = await this.#loadIntents());
      await files.makeDirectory(`${this.#directory}/pulling`, 0o700);
      await files.writeAtomic(this.#intentPath(image), encodePullIntent(image), 0o600);
    } catch (error) {
      throw new Error(`failed to record image pull intent: ${errorMessage(error)}`, { cause: error });
    }
    counts.set(image, (counts.get(image) ?? 0) + 1);
  }

  /**
   * Ends a marked pull.
   * @param outcome told: its result has been recorded; unknown: it may have pulled the image
   */
  async settled(image: string, outcome: "told" | "unknown"): Promise<void> {
    if (!this.isOn) return;
    const { counts } = await this.#loadIntents();
    const others = (counts.get(image) ?? 1) - 1;
    if (others > 0 || outcome === "unknown") {
      counts.set(image, others);
      return;
    }
    try {
      await this.#deps.files.remove(this.#intentPath(image));
      counts.delete(image);
    } catch (error) {
      this.#deps.log.warn("cannot remove an image pull intent", { image, error: errorMessage(error) });
    }
  }

  /** Records a pull. False when the record cannot be written: the registry is then checked again after a restart. */
  async pulled(use: PulledImageUse): Promise<boolean> {
    if (!this.isOn) return true;
    this.#pulledAt.set(use.imageRef, this.#deps.clock.monotonic());
    await this.#record(use.imageRef);
    return await this.#remember(use);
  }

  /** Whether a kubelet of this node pulled the image, according to the records. */
  async isPulled(image: PresentImage): Promise<boolean> {
    for (const reference of referencesOf(image)) {
      const record = await this.#record(reference);
      if (record !== null && record !== "bad") return true;
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
    const directory = `${this.#directory}/pulled`;
    try {
      for (const { name } of await files.list(directory)) {
        if (isImageRecord(name) && !kept.has(name)) await this.#forget(`${directory}/${name}`, beganMs);
      }
      return true;
    } catch (error) {
      log.warn("cannot remove records of images that are gone", { path: directory, error: errorMessage(error) });
      return false;
    }
  }

  async #forget(path: string, beganMs: number): Promise<void> {
    const { files } = this.#deps;
    const forget = async (): Promise<void> => {
      const { imageRef } = decodePulledRecord(new TextDecoder().decode(await files.read(path, maxBytes)));
      if ((this.#pulledAt.get(imageRef) ?? -Infinity) >= beganMs) return;
      await files.remove(path);
      this.#records.delete(imageRef);
      this.#pulledAt.delete(imageRef);
    };
    // In order with writes, so that the record of a pull that has just ended is not mistaken for the previous one.
    const forgotten = this.#writing.then(forget);
    this.#writing = forgotten.catch(() => {});
    await forgotten;
  }

  async #remember(use: PulledImageUse): Promise<boolean> {
    const known = this.#records.get(use.imageRef);
    const before = known === "bad" || known === null ? undefined : known;
    const record = withAccess(before, use, formatTime(this.#deps.clock.now()));
    if (record === before) return true;
    this.#records.set(use.imageRef, record);
    const written = this.#writing.then(() => this.#write(use.imageRef));
    this.#writing = written.then(() => {});
    return await written;
  }

  async #write(imageRef: string): Promise<boolean> {
    const { files, log } = this.#deps;
    const record = this.#records.get(imageRef);
    if (record === undefined || record === null || record === "bad") return true;
    try {
      await files.makeDirectory(`${this.#directory}/pulled`, 0o700);
      await files.writeAtomic(this.#recordPath(imageRef), encodePulledRecord(record), 0o600);
      return true;
    } catch (error) {
      log.warn("cannot store the image pull record", { imageRef, error: errorMessage(error) });
      return false;
    }
  }

  async #record(imageRef: string): Promise<PulledRecord | "bad" | null> {
    const known = this.#records.get(imageRef);
    if (known !== undefined) return known;
    const read = await this.#read(imageRef);
    // A record may have been written during the read.
    const since = this.#records.get(imageRef);
    if (since !== undefined) return since;
    this.#records.set(imageRef, read);
    return read;
  }

  async #read(imageRef: string): Promise<PulledRecord | "bad" | null> {
    const path = this.#recordPath(imageRef);
    try {
      const record = decodePulledRecord(new TextDecoder().decode(await this.#deps.files.read(path, maxBytes)));
      return record.imageRef === imageRef ? record : null;
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return null;
      this.#deps.log.warn("cannot read an image pull record; verifying at the registry", {
        path,
        error: errorMessage(error),
      });
      return "bad";
    }
  }

  /** Whether a pull of it was interrupted. */
  async #wasPulling(names: readonly string[]): Promise<boolean | "unknown"> {
    try {
      const { counts, bad } = await this.#loadIntents();
      if (names.some((name) => bad.has(this.#fileName(name)))) return "unknown";
      return names.some((name) => counts.has(name));
    } catch (error) {
      this.#deps.log.warn("cannot read image pull intents; verifying at the registry", {
        path: `${this.#directory}/pulling`,
        error: errorMessage(error),
      });
      return "unknown";
    }
  }

  /** @throws FileError when the markers cannot be listed; the next call retries */
  #loadIntents(): Promise<Intents> {
    this.#intents ??= this.#readIntents().catch((error: unknown) => {
      this.#intents = undefined;
      throw error;
    });
    return this.#intents;
  }

  async #readIntents(): Promise<Intents> {
    const { files, log } = this.#deps;
    const directory = `${this.#directory}/pulling`;
    const counts = new Map<string, number>();
    const bad = new Set<string>();
    const entries = await files.list(directory).catch((error: unknown) => {
      if (error instanceof FileError && error.code === "ENOENT") return [];
      throw error;
    });
    for (const { name } of entries) {
      if (!isImageRecord(name)) continue;
      const path = `${directory}/${name}`;
      try {
        counts.set(decodePullIntent(new TextDecoder().decode(await files.read(path, maxBytes))), 0);
      } catch (error) {
        bad.add(name);
        log.warn("cannot read an image pull intent", { path, error: errorMessage(error) });
      }
    }
    return { counts, bad };
  }

  #fileName(name: string): string {
    return `sha256-${this.#deps.hashing.sha256(name)}`;
  }

  #recordPath(imageRef: string): string {
    return `${this.#directory}/pulled/${this.#fileName(imageRef)}`;
  }

  #intentPath(image: string): string {
    return `${this.#directory}/pulling/${this.#fileName(image)}`;
  }
}

/** The names by which a record may refer to the image. */
function referencesOf({ id, repoTags, repoDigests }: PresentImage): string[] {
  return [id, ...repoDigests, ...repoTags];
}
