import { orAborted } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { type KubeletPlace, kubeletPlace, whoIs } from "./kubelet-place.ts";

export interface KubeletPlaceGuardDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "stat" | "watch">;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly place: Pick<KubeletPlace, "taken" | "isTaken" | "take" | "leave" | "kubelet">;
}

/** A kubelet that starts creates files and sockets in these. */
const watched = [kubeletPlace, `${kubeletPlace}/device-plugins`, `${kubeletPlace}/pod-resources`];
/** For starts that create nothing there, and for the end of a kubelet. */
const lookMs = 30_000;
/** Of the changes of one start, few are looked at. */
const leastApartMs = 200;
const message = "CSI drivers find the directories of pods and plugins below /var/lib/kubelet again";

/**
 * Notices a kubelet that starts at the place while the engine has it: a Go kubelet does not know the lock, and would tear
 * down the volumes of the engine's pods as orphaned. The place is left to it, and taken again after its end.
 */
export class KubeletPlaceGuard {
  readonly #deps: KubeletPlaceGuardDependencies;
  #problem: string | undefined;

  constructor(deps: KubeletPlaceGuardDependencies) {
    this.#deps = deps;
  }

  /** Why the engine does not have the place although its drivers need it; undefined: it has, or none needs it. */
  get problem(): string | undefined {
    return this.#deps.place.isTaken ? undefined : this.#problem;
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, place } = this.#deps;
    await orAborted(place.taken, signal);
    const wait = new WakeableWait(clock, "a kubelet to start at its usual place");
    while (!signal.aborted) {
      using _watches = await this.#watch(() => wait.wake());
      await this.#look();
      await wait.for(lookMs, signal);
      await clock.sleep("a kubelet to finish its start", leastApartMs, signal).catch(() => {});
    }
  }

  async #watch(onChange: () => void): Promise<Disposable> {
    const { files } = this.#deps;
    const watches = new DisposableStack();
    for (const directory of watched) {
      if ((await files.stat(directory).catch(() => undefined))?.type !== "directory") continue;
      watches.use(files.watch(directory, onChange, () => {}));
    }
    return watches;
  }

  async #look(): Promise<void> {
    const { log, place } = this.#deps;
    try {
      if (place.isTaken) await this.#leaveToKubelet();
      else await this.#takeAgain();
    } catch (error) {
      log.warn("cannot look after the kubelet's usual place", { error: errorMessage(error) });
    }
  }

  async #leaveToKubelet(): Promise<void> {
    const { journal, log, place } = this.#deps;
    const kubelet = await place.kubelet();
    if (kubelet === undefined) return;
    const { pid, arguments: words } = kubelet;
    this.#problem = `another node agent has started at ${kubeletPlace}${whoIs(kubelet)}: CSI drivers cannot start here`;
    await place.leave();
    journal.record({ kind: "note", what: "KubeletPlaceLeft", message: this.#problem });
    log.warn("a kubelet has started at its usual place; leaving it to that one", { pid, command: words.join(" ") });
  }

  async #takeAgain(): Promise<void> {
    const { journal, place } = this.#deps;
    try {
      if (await place.take()) journal.record({ kind: "note", what: "KubeletPlaceTaken", message });
    } catch (error) {
      this.#problem = errorMessage(error);
    }
  }
}
