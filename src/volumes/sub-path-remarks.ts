import type { PodUid } from "../base/ids.ts";
import type { PodRef, Recorder } from "../journal/entry.ts";

/**
 * Reports why subPaths cannot be mounted, until they can. The journal is the administrator's; the container's error shows
 * less, because the pod's author sees it.
 */
export class SubPathRemarks {
  readonly #journal: Recorder;
  /** Messages by pod and mount. */
  readonly #told = new Map<PodUid, Map<string, string>>();

  constructor(journal: Recorder) {
    this.#journal = journal;
  }

  /**
   * @param mount identifies it in its pod
   * @param message undefined: it can be mounted
   */
  tell(pod: PodRef, mount: string, message: string | undefined): void {
    const { uid } = pod;
    const told = this.#told.get(uid) ?? new Map<string, string>();
    const before = told.get(mount);
    if (message === before) return;
    if (before !== undefined) this.#record(pod, "VolumeWarningOver", before);
    if (message === undefined) told.delete(mount);
    else {
      told.set(mount, message);
      this.#record(pod, "VolumeWarning", message);
    }
    if (told.size > 0) this.#told.set(uid, told);
    else this.#told.delete(uid);
  }

  forget(uid: PodUid): void {
    this.#told.delete(uid);
  }

  #record(pod: PodRef, what: "VolumeWarning" | "VolumeWarningOver", message: string): void {
    this.#journal.record({ kind: "observation", what, message, pod });
  }
}
