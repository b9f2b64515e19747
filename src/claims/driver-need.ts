import type { CsiDriver } from "../api/csi-node.ts";
import type { Pod } from "../api/pod.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Logger } from "../ports/log.ts";
import { objectName } from "../sources/prepare.ts";
import { bringsDriverVolume, driverPods } from "./local-csi.ts";
import type { ComingChange } from "./storage-changes.ts";

/** The path where drivers expect a kubelet. */
export interface DriverPlace {
  /** Resolves to false if it was taken before. Throws a PodwrightError if another process uses it. */
  take(): Promise<boolean>;
  /** Has it taken later, once that is possible. */
  need(): void;
  /** Whether an earlier engine has left its directories there. */
  isShown(): Promise<boolean>;
}

/** Required only with CSI drivers. */
export interface RunClaimsDrivers {
  /** Receives all of them at each change. */
  readonly objects: { set(all: readonly CsiDriver[]): void };
  readonly place: DriverPlace;
}

const message = "CSI drivers find the directories of pods and plugins below /var/lib/kubelet";

/** Takes the path of drivers for those who need it. */
export class DriverNeed {
  readonly #deps: { readonly journal: Recorder; readonly log: Logger };
  readonly #place: DriverPlace;

  constructor(deps: { readonly journal: Recorder; readonly log: Logger }, place: DriverPlace) {
    this.#deps = deps;
    this.#place = place;
  }

  /**
   * A driver's volume without a pod can wait.
   * @throws PodwrightError with a problem for each of the pods that need drivers
   */
  async prepare(change: ComingChange): Promise<void> {
    const pods = driverPods(change);
    if (pods.length === 0 && !bringsDriverVolume(change.objects)) return;
    try {
      await this.#take();
    } catch (error) {
      if (pods.length > 0) throw refused(error, pods);
      this.#later(error);
    }
  }

  /**
   * What an earlier engine has left there is taken as well: otherwise nobody would keep a kubelet that starts from it, and
   * nobody would remove it at the end. Never rejects.
   */
  async resume(change: ComingChange): Promise<void> {
    try {
      if (driverPods(change).length > 0 || (await this.#place.isShown())) await this.#take();
    } catch (error) {
      this.#later(error);
    }
  }

  async #take(): Promise<void> {
    if (await this.#place.take()) this.#deps.journal.record({ kind: "note", what: "KubeletPlaceTaken", message });
  }

  #later(error: unknown): void {
    this.#place.need();
    this.#deps.log.warn("cannot prepare the machine for CSI drivers yet", { error: errorMessage(error) });
  }
}

function refused(error: unknown, pods: readonly Pod[]): PodwrightError {
  const { exitCode, remedy } = error instanceof PodwrightError ? error : { exitCode: ExitCode.environment };
  const detail = errorMessage(error);
  return new PodwrightError(exitCode, detail, {
    cause: error,
    problems: pods.map((pod) => ({ object: objectName({ ...pod, kind: "Pod" }), path: [], detail })),
    ...(remedy !== undefined && { remedy }),
  });
}
