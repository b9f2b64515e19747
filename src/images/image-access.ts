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

/** An image that is on the node, by all its names. */
export interface PresentImage {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
}

interface Intents {
  /** How many pulls of an image are under way. */
  readonly counts: Map<string, number>;
  /** Names of files that can't be read. */
  readonly bad: ReadonlySet<string>;
}

const maxBytes = 16 * 1024 * 1024;

/**
 * Remembers with which credentials images were pulled, so that a pod uses none that it could not have pulled itself
 * (KEP-2535, upstream's image pull manager). The records are files of the Go kubelet's layout below
 * `{root-dir}/image_manager`.
 */
export class ImageAccess {
  readonly #deps: ImageAccessDependencies;
  readonly #policy: VerificationPolicy;
  readonly #directory: string;
  /** By image ID; null: there is none, "bad": it can't be read. */
  readonly #records = new Map<string, PulledRecord | "bad" | null>();
  /** Images that are being pulled with a pod's credential, or were when an earlier run ended. */
  #intents: Promise<Intents> | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** When images were last pulled in this life, monotonic ms, by image ID: a record does not change for each pull. */
  readonly #pulledAt = new Map<string, number>();

  /** @param rootDirectory `/var/lib/kubelet` */
  constructor(deps: ImageAccessDependencies, policy: VerificationPolicy, rootDirectory: string) {
    this.#deps = deps;
    this.#policy = policy;
    this.#directory = `${rootDirectory}/${imageRecordDirectory}`;
  }

  /** Whether anybody is asked, and anything is remembered. */
  get isOn(): boolean {
    return this.#policy.policy !== "Off";
  }

  /**
   * Whether a pod may use an image that is on the node without asking its registry. What can't be read proves nothing,
   * whatever the policy says.
   * @param image as the pod has it
   * @param credentials what the pod could show to the registry, asked for only when it matters
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
   * An image is about to be pulled with credentials of a pod: if podwright is killed before the pull has ended, it must
   * not count as one that anybody may use.
   * @throws Error when that can't be noted
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
   * The pull that was noted has come to an end.
   * @param outcome told: what it brought was told before; unknown: nobody knows whether it brought something
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

  /** The image was pulled. False when that can't be kept: the image is then asked for again after a restart. */
  async pulled(use: PulledImageUse): Promise<boolean> {
    if (!this.isOn) return true;
    this.#pulledAt.set(use.imageRef, this.#deps.clock.monotonic());
    await this.#record(use.imageRef);
    return await this.#remember(use);
  }

  /** Whether a kubelet of this node pulled the image, as far as records say. */
  async isPulled(image: PresentImage): Promise<boolean> {
    for (const reference of referencesOf(image)) {
      const record = await this.#record(reference);
      if (record !== null && record !== "bad") return true;
    }
    return false;
  }

  /**
   * Forgets how images were pulled that are gone. Never rejects: what is left is found by the next time.
   * @param present all images that the runtime has, listed after `beganMs`
   * @param beganMs monotonic; of what was pulled since then the list may know nothing
   */
  async prune(present: readonly PresentImage[], beganMs: number): Promise<void> {
    if (!this.isOn) return;
    const { files, log } = this.#deps;
    const kept = new Set(present.flatMap(referencesOf).map((reference) => this.#fileName(reference)));
    const directory = `${this.#directory}/pulled`;
    try {
      for (const { name } of await files.list(directory)) {
        if (isImageRecord(name) && !kept.has(name)) await this.#forget(`${directory}/${name}`, beganMs);
      }
    } catch (error) {
      log.warn("cannot remove records of images that are gone", { path: directory, error: errorMessage(error) });
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
    // In order with what is written: a record that a pull has just made is not taken for the one before.
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
    // Somebody may have written one while this was read.
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

  /** Whether a pull of it was under way that told of no end. */
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

  /** @throws FileError when there are some and nobody can say which; the next time tries again */
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

/** What a record may name the image by. */
function referencesOf({ id, repoTags, repoDigests }: PresentImage): string[] {
  return [id, ...repoDigests, ...repoTags];
}
