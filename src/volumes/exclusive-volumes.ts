import type { PodUid } from "../base/ids.ts";
import type { Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import { isCopyOfPod } from "../runtime/layout/pod-names.ts";

export interface ExclusiveVolumesDependencies {
  readonly files: Pick<Files, "list" | "read">;
  readonly mounts: Pick<Mounts, "below">;
  /** Whether the pod has ended, and what is left of its volumes belongs to no plugin. */
  readonly isLeft: (uid: string) => boolean;
}

/** Which pods use the volumes that one pod at a time may use (ReadWriteOncePod). */
export class ExclusiveVolumes {
  readonly #deps: ExclusiveVolumesDependencies;
  /** By the PersistentVolume's name. */
  readonly #users = new Map<string, PodUid>();
  /** Volumes whose release is awaited. */
  readonly #awaited = new Map<string, PromiseWithResolvers<void>>();

  constructor(deps: ExclusiveVolumesDependencies) {
    this.#deps = deps;
  }

  /**
   * Takes a volume for a pod until its release; otherwise returns the release of its present user to wait for. Another
   * pod's directory of the volume shows that it is in use, whichever run set it up.
   * @param root the node's root directory
   * @param plugin the name of the volume's plugin
   */
  async take(
    volume: string,
    uid: PodUid,
    root: string,
    plugin: string,
  ): Promise<{ readonly until: Promise<void> } | undefined> {
    const user = this.#users.get(volume);
    if (user === uid) return undefined;
    if (user !== undefined) return { until: this.#releaseOf(user) };
    this.#users.set(volume, uid);
    try {
      const other = await this.#otherUser(volume, uid, root, plugin);
      if (other === undefined) return undefined;
      this.#users.delete(volume);
      return { until: this.#releaseOf(other) };
    } catch (error) {
      this.#users.delete(volume);
      throw error;
    }
  }

  async #otherUser(volume: string, uid: PodUid, root: string, plugin: string): Promise<string | undefined> {
    const { files } = this.#deps;
    const pods = `${root}/pods`;
    for (const { name } of await files.list(pods)) {
      if (name === uid) continue;
      for (const kind of ["volumes", "volumeDevices"]) {
        const directory = `${pods}/${name}/${kind}/${plugin}`;
        // The entry in its parent directory: accessing the volume itself could hang on a dead mount.
        const entries = await files.list(directory).catch(() => []);
        if (!entries.some((entry) => entry.name === volume)) continue;
        // A copy of a pod's directory uses nothing. Any other may be a pod's that could not be recorded.
        const isCopy = await isCopyOfPod(files, { rootDirectory: root }, name);
        if (isCopy && (kind === "volumeDevices" || (await this.#deps.mounts.below(directory)).length === 0)) continue;
        if (kind === "volumeDevices" || (await this.#isUsed(name, `${directory}/${volume}`))) return name;
      }
    }
    return undefined;
  }

  /** Files that are left in the unmounted directory of a dead pod are not the volume's. */
  async #isUsed(uid: string, directory: string): Promise<boolean> {
    const { mounts, isLeft } = this.#deps;
    return !isLeft(uid) || (await mounts.below(directory)).length > 0;
  }

  #releaseOf(uid: string): Promise<void> {
    const known = this.#awaited.get(uid);
    if (known !== undefined) return known.promise;
    const awaited = Promise.withResolvers<void>();
    this.#awaited.set(uid, awaited);
    return awaited.promise;
  }

  releaseAll(uid: PodUid): void {
    for (const [volume, user] of this.#users) if (user === uid) this.#users.delete(volume);
    this.#awaited.get(uid)?.resolve();
    this.#awaited.delete(uid);
  }
}
