import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { PodUid } from "../base/ids.ts";
import type { Recorder } from "../journal/entry.ts";
import type { PathKind, VolumeFiles } from "../ports/volume-files.ts";
import { podRef } from "../runtime/pod-ref.ts";

/** How messages call what is at a path. */
export const kindWords: Readonly<Record<PathKind, string>> = {
  directory: "a directory",
  file: "a file",
  socket: "a socket",
  characterDevice: "a character device",
  blockDevice: "a block device",
  other: "something else",
};

interface Remembered {
  readonly kind: PathKind | undefined;
  readonly remark: string | undefined;
}

/**
 * Reports untyped host paths that differ from what pods mounted there before, or from what their name suggests, e.g. a
 * socket whose program removed it. Runtimes create a directory for a missing path, and the container fails without an
 * explanation.
 */
export class HostPathRemarks {
  readonly #deps: { readonly volumeFiles: Pick<VolumeFiles, "kind">; readonly journal: Recorder };
  /** By pod and volume. */
  readonly #known = new Map<PodUid, Map<string, Remembered>>();

  constructor(deps: { readonly volumeFiles: Pick<VolumeFiles, "kind">; readonly journal: Recorder }) {
    this.#deps = deps;
  }

  /**
   * Checks the paths that a pod's containers are about to mount. Never rejects: an unreadable path is not reported. Nor is
   * one on another disk or a server: a remark is not worth a wait for storage that hangs, or a mount by an automounter.
   */
  async look(pod: Pod, { name, hostPath }: Volume): Promise<void> {
    if (hostPath === undefined || (hostPath.type ?? "") !== "") return;
    const asked = this.#deps.volumeFiles.kind(hostPath.path, { onlyOnOwnDisks: true });
    const found = await asked.catch(() => "other" as const);
    if (found !== "other") this.#judge(pod, name, hostPath.path, found);
  }

  forget(uid: PodUid): void {
    this.#known.delete(uid);
  }

  #judge(pod: Pod, volume: string, path: string, found: PathKind | undefined): void {
    const known = this.#known.get(pod.metadata.uid) ?? new Map<string, Remembered>();
    this.#known.set(pod.metadata.uid, known);
    const before = known.get(volume);
    const kind = before?.kind ?? (/[-._]sock(?:et)?$/u.test(path) ? "socket" : found);
    const remark = kind === undefined || kind === found ? undefined : remarkOn(volume, path, kind, found);
    known.set(volume, { kind, remark });
    if (remark === before?.remark) return;
    const tell = (what: "VolumeWarning" | "VolumeWarningOver", message: string): void => {
      this.#deps.journal.record({ kind: "observation", what, message, pod: podRef(pod) });
    };
    if (before?.remark !== undefined) tell("VolumeWarningOver", before.remark);
    if (remark !== undefined) tell("VolumeWarning", remark);
  }
}

function remarkOn(volume: string, path: string, kind: PathKind, found: PathKind | undefined): string {
  const now =
    found === undefined ? "it does not exist, and the runtime creates an empty directory" : `it is ${kindWords[found]}`;
  return `hostPath ${path} of volume ${volume} should be ${kindWords[kind]}: ${now}`;
}
