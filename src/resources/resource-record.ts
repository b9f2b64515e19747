import type { ResourceRequirements } from "../api/container.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { RecordFiles } from "../base/patient-files.ts";
import { FileError } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { decodeCheckpoint, encodeCheckpoint, type PodResources } from "./resource-checkpoint.ts";

const maxBytes = 64 * 1024 * 1024;

/**
 * Pods' resources by UID, in a checkpoint file of the Go kubelet's format. Changes take effect at once and are written
 * in batches shortly after; {@link saved} waits for that. No fsync: a power failure that loses them also ends the
 * containers.
 */
export class ResourceRecord {
  readonly #files: RecordFiles;
  readonly #log: Logger;
  readonly #path: string;
  #pods = new Map<PodUid, PodResources>();
  /** The file's text. */
  #stored = "";
  #changed = false;
  #writing: Promise<void> | undefined;
  #failed = false;

  /** @param path the file, e.g. `/var/lib/kubelet/allocated_pods_state` */
  constructor(files: RecordFiles, log: Logger, path: string) {
    this.#files = files;
    this.#log = log;
    this.#path = path;
  }

  /**
   * Reads an earlier run's record. An unreadable file is renamed to `<path>.bad`; pods then have their manifests'
   * resources, and nothing restarts.
   */
  async load(): Promise<void> {
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(await this.#files.read(this.#path, maxBytes));
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return;
      await this.#setAside(error);
      return;
    }
    try {
      this.#pods = new Map([...decodeCheckpoint(text), ...this.#pods]);
      this.#stored = text;
    } catch (error) {
      await this.#setAside(error);
    }
  }

  get(uid: PodUid): PodResources | undefined {
    return this.#pods.get(uid);
  }

  set(uid: PodUid, resources: PodResources): void {
    this.#changed = true;
    this.#pods.set(uid, resources);
  }

  /** Sets the resources of a container, or of the pod itself (`undefined`). */
  setPart(uid: PodUid, container: string | undefined, resources: ResourceRequirements | undefined): void {
    this.#changed = true;
    const before = this.#pods.get(uid) ?? { containers: new Map(), pod: undefined };
    if (container === undefined) this.#pods.set(uid, { ...before, pod: resources });
    else this.#pods.set(uid, { ...before, containers: new Map(before.containers).set(container, resources ?? {}) });
  }

  /** Forgets a pod: one that comes back under its UID, in this run or the next, must not get what this one had. */
  remove(uid: PodUid): void {
    if (!this.#pods.delete(uid)) return;
    this.#changed = true;
    void this.saved();
  }

  /** UIDs of recorded pods. */
  uids(): PodUid[] {
    return [...this.#pods.keys()];
  }

  /** Resolves when the file has all earlier changes. A failed write is logged once and delays no pod. */
  async saved(): Promise<void> {
    // The write in progress may lack the latest change.
    await this.#writing;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  async #write(): Promise<void> {
    if (!this.#changed) return;
    this.#changed = false;
    try {
      const text = encodeCheckpoint(this.#pods);
      if (text === this.#stored) return;
      const temporary = `${this.#path}.tmp`;
      await this.#files.write(temporary, text, 0o600);
      await this.#files.rename(temporary, this.#path);
      this.#stored = text;
      this.#failed = false;
    } catch (error) {
      if (!this.#failed) {
        this.#log.warn("cannot record allocated resources; a restart will use the manifests", {
          path: this.#path,
          error: errorMessage(error),
        });
      }
      this.#failed = true;
      this.#changed = true;
    }
  }

  async #setAside(error: unknown): Promise<void> {
    const aside = `${this.#path}.bad`;
    this.#log.warn("cannot read allocated resources; using the manifests", {
      path: this.#path,
      aside,
      error: errorMessage(error),
    });
    try {
      await this.#files.rename(this.#path, aside);
    } catch (renaming) {
      this.#log.warn("cannot rename the unreadable record of allocated resources", {
        path: this.#path,
        error: errorMessage(renaming),
      });
    }
  }
}
