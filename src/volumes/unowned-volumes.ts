import { shortList } from "../base/short-list.ts";
import type { PodRef, Recorder } from "../journal/entry.ts";
import type { Logger } from "../ports/log.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { UnownedVolume } from "./volumes-on-disk.ts";

/** More are only counted. */
const shown = 10;

/** Volumes that remain in the directory of a pod that is gone or has ended for good. */
export interface VolumesLeft {
  readonly pod: PodRef;
  /** The pod's. */
  readonly directory: string;
  /** `volumes/kubernetes.io~csi/pvc-1 (mounted)`, some of them and the number of others. */
  readonly list: string;
}

/**
 * Reports volumes that stay in pods' directories because no plugin owns them: those of a driver that another kubelet
 * used on this node. Once per pod, until the set changes.
 */
export class UnownedVolumes {
  readonly #journal: Recorder;
  readonly #log: Logger;
  /** By pod UID. */
  readonly #left = new Map<string, VolumesLeft>();

  constructor(journal: Recorder, log: Logger) {
    this.#journal = journal;
    this.#log = log;
  }

  /** As of the last observation. */
  get left(): readonly VolumesLeft[] {
    return [...this.#left.values()];
  }

  /** @param volumes all that remain of the pod; none: its directory is removed */
  report(pod: PodRef, { pod: directory }: VolumePaths, volumes: readonly UnownedVolume[]): void {
    if (volumes.length === 0) {
      this.#left.delete(pod.uid);
      return;
    }
    const places = volumes.map(({ place, mounts }) => (mounts.length > 0 ? `${place} (mounted)` : place)).toSorted();
    const list = shortList(places, shown, ", ");
    if (this.#left.get(pod.uid)?.list === list) return;
    this.#left.set(pod.uid, { pod, directory, list });
    const message =
      `no volume plugin owns ${list}: left in ${directory}, ` +
      "which is removed once they are unmounted and their directories are empty";
    this.#journal.record({ kind: "note", what: "VolumesLeft", message, pod });
    this.#log.warn("leaving volumes without a plugin in place", { ...pod, directory, volumes: list });
  }
}
