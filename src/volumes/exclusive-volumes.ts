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

const none: ReadonlySet<string> = new Set();

/** Which pods use the volumes that one pod at a time may use (ReadWriteOncePod). */
export class ExclusiveVolumes {
  readonly #deps: ExclusiveVolumesDependencies;
  /** By plugin and PersistentVolume: `kubernetes.io~csi/pv-1`. */
  readonly #users = new Map<string, PodUid>();
  /** Volumes whose release is awaited, by their users. */
  readonly #awaited = new Map<string, Map<string, PromiseWithResolvers<void>>>();

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
    const key = `${plugin}/${volume}`;
    const user = this.#users.get(key);
    if (user === uid) return undefined;
    if (user !== undefined) return { until: this.#releaseOf(key, user) };
    this.#users.set(key, uid);
    try {
      const other = await this.#otherUser(volume, uid, root, plugin);
      if (other === undefined) return undefined;
      this.#users.delete(key);
      return { until: this.#releaseOf(key, other) };
    } catch (error) {
      this.#users.delete(key);
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

  #releaseOf(key: string, uid: string): Promise<void> {
    const own = this.#awaited.get(uid) ?? new Map<string, PromiseWithResolvers<void>>();
    this.#awaited.set(uid, own);
    const awaited = own.get(key) ?? Promise.withResolvers<void>();
    own.set(key, awaited);
    return awaited.promise;
  }

  /** The pod's volume is torn down: others of the pod may take longer. @param key `<plugin>/<name>` */
  release(uid: PodUid, key: string): void {
    if (this.#users.get(key) === uid) this.#users.delete(key);
    const own = this.#awaited.get(uid);
    own?.get(key)?.resolve();
    own?.delete(key);
    if (own?.size === 0) this.#awaited.delete(uid);
  }

  /** @param kept `<plugin>/<name>` of volumes that stay the pod's */
  releaseAll(uid: PodUid, kept: ReadonlySet<string> = none): void {
    const used = [...this.#users].flatMap(([key, user]) => (user === uid ? [key] : []));
    for (const key of [...used, ...(this.#awaited.get(uid)?.keys() ?? [])]) if (!kept.has(key)) this.release(uid, key);
  }
}
