import { orAborted } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { ProcessInfo } from "../ports/processes.ts";
import { type KubeletPlace, kubeletPlace, whoIs } from "./kubelet-place.ts";

export interface KubeletPlaceGuardDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "stat" | "realPath" | "watch">;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly place: Pick<KubeletPlace, "needed" | "isTaken" | "isHeld" | "take" | "leave" | "kubelet">;
}

/** A kubelet that starts creates files and sockets in these. */
const watched = [kubeletPlace, `${kubeletPlace}/device-plugins`, `${kubeletPlace}/pod-resources`];
/** For starts that create nothing there, and for the end of a kubelet. */
const lookMs = 30_000;
/** Of the changes of one start, few are looked at. */
const leastApartMs = 200;
const message = "CSI drivers find the directories of pods and plugins below /var/lib/kubelet again";

/**
 * Notices a kubelet at the place while the engine has it, or its directories are still there: a Go kubelet does not know the
 * lock, and would tear down the volumes of the engine's pods as orphaned. The place is left to it, and taken after its end.
 */
export class KubeletPlaceGuard {
  readonly #deps: KubeletPlaceGuardDependencies;
  readonly #wait: WakeableWait;
  #problem: string | undefined;
  #freeAtMs = 0;

  constructor(deps: KubeletPlaceGuardDependencies) {
    this.#deps = deps;
    this.#wait = new WakeableWait(deps.clock, "a kubelet to start at its usual place");
  }

  /** Why the engine does not have the place although its drivers need it; undefined: it has, or none needs it. */
  get problem(): string | undefined {
    return this.#deps.place.isTaken ? undefined : this.#problem;
  }

  /** Since when a kubelet may have used the place unnoticed: the last time that there was none. */
  get freeAtMs(): number {
    return this.#freeAtMs;
  }

  /** Looks soon: a plugin that has registered is the engine's if no kubelet is there after that. */
  lookSoon(): void {
    if (this.#deps.place.isTaken) this.#wait.wake();
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, place } = this.#deps;
    const wait = this.#wait;
    await orAborted(place.needed, signal);
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
      // An administrator may have made a link of it.
      const real = await files.realPath(directory).catch(() => directory);
      if ((await files.stat(real).catch(() => undefined))?.type !== "directory") continue;
      watches.use(files.watch(real, onChange, () => {}));
    }
    return watches;
  }

  async #look(): Promise<void> {
    const { log, place } = this.#deps;
    try {
      const kubelet = (await place.isHeld()) ? await this.#kubelet() : undefined;
      if (kubelet !== undefined) await this.#leaveTo(kubelet);
      else if (!place.isTaken) await this.#takeAgain();
    } catch (error) {
      log.warn("cannot look after the kubelet's usual place", { error: errorMessage(error) });
    }
  }

  async #kubelet(): Promise<ProcessInfo | undefined> {
    const { clock, place } = this.#deps;
    const nowMs = clock.monotonic();
    const kubelet = await place.kubelet();
    if (kubelet === undefined) this.#freeAtMs = nowMs;
    return kubelet;
  }

  async #leaveTo(kubelet: ProcessInfo): Promise<void> {
    const { journal, log, place } = this.#deps;
    const { pid, arguments: words } = kubelet;
    const started = `another node agent has started at ${kubeletPlace}${whoIs(kubelet)}`;
    this.#problem = `${started}: CSI drivers cannot start here`;
    try {
      await place.leave();
    } catch (error) {
      this.#problem = `${started}, and podwright's directories are still there: ${errorMessage(error)}`;
      throw error;
    }
    journal.record({ kind: "note", what: "KubeletPlaceLeft", message: this.#problem });
    log.warn("a kubelet has started at its usual place; leaving it to that one", { pid, command: words.join(" ") });
  }

  async #takeAgain(): Promise<void> {
    const { clock, journal, place } = this.#deps;
    const nowMs = clock.monotonic();
    try {
      const isNew = await place.take();
      this.#freeAtMs = nowMs;
      if (isNew) journal.record({ kind: "note", what: "KubeletPlaceTaken", message });
    } catch (error) {
      this.#problem = errorMessage(error);
    }
  }
}
