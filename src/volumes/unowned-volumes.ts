import type { PodRef, Recorder } from "../journal/entry.ts";
import type { Logger } from "../ports/log.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { UnownedVolume } from "./volumes-on-disk.ts";

/** Further ones are only counted. */
const shown = 10;

/**
 * Reports volumes that stay in pods' directories because no plugin owns them: those of a driver that another kubelet
 * used on this node. Once per pod, until the set changes.
 */
export class UnownedVolumes {
  readonly #journal: Recorder;
  readonly #log: Logger;
  /** By pod UID. */
  readonly #reported = new Map<string, string>();

  constructor(journal: Recorder, log: Logger) {
    this.#journal = journal;
    this.#log = log;
  }

  report(pod: PodRef, paths: VolumePaths, left: readonly UnownedVolume[]): void {
    const places = left.map(({ place, mounts }) => (mounts.length > 0 ? `${place} (mounted)` : place)).toSorted();
    const more = places.length > shown ? ` and ${places.length - shown} more` : "";
    const list = `${places.slice(0, shown).join(", ")}${more}`;
    if (this.#reported.get(pod.uid) === list || places.length === 0) return;
    this.#reported.set(pod.uid, list);
    const message =
      `no volume plugin owns ${list}: left in ${paths.pod}, ` +
      "which is removed once they are unmounted and their directories are empty";
    this.#journal.record({ kind: "note", what: "VolumesLeft", message, pod });
    this.#log.warn("volumes without a plugin left in place", { ...pod, directory: paths.pod, volumes: list });
  }

  forget(uid: string): void {
    this.#reported.delete(uid);
  }
}
