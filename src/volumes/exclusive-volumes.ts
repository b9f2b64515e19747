import type { PodUid } from "../base/ids.ts";
import type { Files } from "../ports/files.ts";

/** Which pods use the volumes that one pod at a time may use (ReadWriteOncePod). */
export class ExclusiveVolumes {
  readonly #files: Pick<Files, "list">;
  /** By the PersistentVolume's name. */
  readonly #users = new Map<string, PodUid>();

  constructor(files: Pick<Files, "list">) {
    this.#files = files;
  }

  /**
   * Whether the pod may use the volume; it then does until it is released. Another pod's directory of the volume shows that
   * it is in use, whichever run set it up.
   * @param root the node's root directory
   * @param plugin the name of the volume's plugin
   */
  async take(volume: string, uid: PodUid, root: string, plugin: string): Promise<boolean> {
    const user = this.#users.get(volume);
    if (user !== undefined) return user === uid;
    this.#users.set(volume, uid);
    try {
      if (!(await this.#isElsewhere(volume, uid, `${root}/pods`, plugin))) return true;
    } catch (error) {
      this.#users.delete(volume);
      throw error;
    }
    this.#users.delete(volume);
    return false;
  }

  async #isElsewhere(volume: string, uid: PodUid, pods: string, plugin: string): Promise<boolean> {
    for (const { name } of await this.#files.list(pods)) {
      if (name === uid) continue;
      for (const kind of ["volumes", "volumeDevices"]) {
        const directory = `${pods}/${name}/${kind}/${plugin}`;
        // The entry in its parent directory: accessing the volume itself could hang on a dead mount.
        const entries = await this.#files.list(directory).catch(() => []);
        if (entries.some((entry) => entry.name === volume)) return true;
      }
    }
    return false;
  }

  releaseAll(uid: PodUid): void {
    for (const [volume, user] of this.#users) if (user === uid) this.#users.delete(volume);
  }
}
