import { TimerQueue } from "../base/timer-queue.ts";
import { TransientMap } from "../base/transient-map.ts";
import type { PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";

/** Work on a volume that depends on its storage. */
export interface StorageWork {
  readonly pod: PodRef;
  /** The name of its directory: the PersistentVolume's, or the pod volume's for an inline volume. */
  readonly volume: string;
  /** A driver's name, or that of a volume type: `local`. */
  readonly driver: string;
  /** keep up: publish it again, or expand it, while its pod runs. */
  readonly operation: "set up" | "tear down" | "measure" | "keep up";
}

/** Work that takes long. */
export interface StorageWait extends StorageWork {
  readonly sinceMonotonicMs: number;
}

/** How messages name it. */
export const workNouns = {
  "set up": "set-up",
  "tear down": "teardown",
  measure: "measurement",
  "keep up": "upkeep",
} as const;

/** Work that takes longer is reported. */
export const namedAfterMs = 30_000;

const allWork: readonly StorageWork["operation"][] = ["set up", "measure", "tear down", "keep up"];

interface Wait extends StorageWait {
  /** Fires when it is to be reported. */
  timer: Disposable | undefined;
  message: string;
  /** Why it does not come to an end, as reported last. */
  held: string;
}

/** Ends work. @param answered false: storage did not respond, and the wait lasts until an attempt gets a response */
export type EndOfWork = (answered: boolean) => void;

/**
 * Reports volumes whose storage or driver does not respond: in the journal of their pod, and on request. Otherwise such
 * a pod seems to hang without a reason.
 */
export class StorageWaits {
  readonly #clock: Clock;
  readonly #journal: Recorder;
  readonly #log: Logger;
  readonly #waits = new TransientMap<string, Wait>();
  readonly #silences: TimerQueue;

  constructor(clock: Clock, journal: Recorder, log: Logger) {
    this.#clock = clock;
    this.#silences = new TimerQueue(clock, "work on volumes to be named");
    this.#journal = journal;
    this.#log = log;
  }

  /** The caller must end it, whatever its outcome. */
  begin(work: StorageWork): EndOfWork {
    const key = keyOf(work);
    const wait = this.#waits.get(key) ?? this.#start(key, work);
    return (answered) => {
      if (answered && this.#waits.get(key) === wait) this.#end(key, wait);
    };
  }

  /** An attempt failed and will be repeated: the work is not silent, and its wait has a reason. */
  held(work: StorageWork, problem: string): void {
    const wait = this.#waits.get(keyOf(work));
    const held = `volume ${work.volume} (${work.driver}) ${problem}`;
    if (wait === undefined || wait.held === held) return;
    this.#heldOver(wait);
    wait.held = held;
    this.#journal.record({ kind: "observation", what: "VolumeHeld", message: held, pod: work.pod });
  }

  /** The longest wait first. */
  get hanging(): readonly StorageWait[] {
    const named = this.#waits.values().filter(({ message }) => message !== "");
    return named.toSorted((a, b) => a.sinceMonotonicMs - b.sinceMonotonicMs);
  }

  /** Drops the pod's waits, except for the teardown of its volumes. */
  forget(uid: string, operations: readonly StorageWork["operation"][] = allWork): void {
    for (const [key, wait] of this.#waits.entries()) {
      if (wait.pod.uid === uid && operations.includes(wait.operation)) this.#end(key, wait);
    }
  }

  /** Work on volumes has ended: nothing is reported from here on. */
  close(): void {
    this.#silences[Symbol.dispose]();
    this.#waits.clear();
  }

  #start(key: string, work: StorageWork): Wait {
    const { pod, volume, driver, operation } = work;
    const wait: Wait = { ...work, sinceMonotonicMs: this.#clock.monotonic(), timer: undefined, message: "", held: "" };
    this.#waits.set(key, wait);
    wait.timer = this.#silences.at(wait.sinceMonotonicMs + namedAfterMs, () => {
      if (wait.held !== "") return;
      wait.message = `volume ${volume} (${driver}) does not answer: its ${workNouns[operation]} has not returned within 30 s`;
      this.#journal.record({ kind: "observation", what: "VolumeSilent", message: wait.message, pod });
      this.#log.warn("storage does not answer", { ...pod, volume, driver, operation });
    });
    return wait;
  }

  #end(key: string, wait: Wait): void {
    const { pod, message } = wait;
    wait.timer?.[Symbol.dispose]();
    this.#waits.delete(key);
    this.#heldOver(wait);
    if (message !== "") this.#journal.record({ kind: "observation", what: "VolumeSilenceOver", message, pod });
  }

  #heldOver({ pod, held }: Wait): void {
    if (held !== "") this.#journal.record({ kind: "observation", what: "VolumeHeldOver", message: held, pod });
  }
}

function keyOf({ pod, volume, operation }: StorageWork): string {
  return `${pod.uid} ${volume} ${operation}`;
}
