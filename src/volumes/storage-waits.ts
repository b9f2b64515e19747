import { TimerQueue } from "../base/timer-queue.ts";
import { TransientMap } from "../base/transient-map.ts";
import type { PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { isSilence } from "./volume-meter.ts";

/** Work on a volume that depends on its storage. */
export interface StorageWork {
  /** Undefined: of no pod, as a volume that is staged on the node. */
  readonly pod?: PodRef;
  /** The name of its directory: the PersistentVolume's, or the pod volume's for an inline volume. */
  readonly volume: string;
  /** A driver's name, or that of a volume type: `local`. */
  readonly driver: string;
  /** keep up: publish it again, or expand it, while its pod runs. */
  readonly operation: "set up" | "tear down" | "measure" | "keep up" | "unstage";
}

/** Work that is repeated until it succeeds reports each attempt here. */
export interface Attempts {
  begins(): void;
  /** It will be repeated. @param problem as of a verb: `cannot be unpublished: …` */
  failed(problem: string, error: unknown): void;
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
  unstage: "unstaging",
} as const;

/** Work that takes longer is reported. */
export const namedAfterMs = 30_000;

const allWork: readonly StorageWork["operation"][] = ["set up", "measure", "tear down", "keep up"];

interface Wait extends StorageWork {
  /** When the first attempt without an answer began. */
  sinceMonotonicMs: number;
  /** Fires when its silence is to be reported; undefined: it was reported, or the last attempt got an answer. */
  timer: Disposable | undefined;
  /** The silence reported; empty: none. */
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
  #explain: (work: StorageWork) => string | undefined = () => undefined;

  constructor(clock: Clock, journal: Recorder, log: Logger) {
    this.#clock = clock;
    this.#silences = new TimerQueue(clock, "work on volumes to be named");
    this.#journal = journal;
    this.#log = log;
  }

  /** @param explain says in a clause what silent work waits for; undefined: not known */
  explainBy(explain: (work: StorageWork) => string | undefined): void {
    this.#explain = explain;
  }

  /** Work, or a further attempt at it, begins. The caller must end it, whatever its outcome. */
  begin(work: StorageWork): EndOfWork {
    const key = keyOf(work);
    const wait = this.#waits.get(key) ?? this.#start(key, work);
    if (wait.timer === undefined && wait.message === "") this.#listen(wait);
    return (answered) => {
      if (answered && this.#waits.get(key) === wait) this.#end(key, wait);
    };
  }

  /** For work that has begun. */
  attempts(work: StorageWork): Attempts {
    return {
      begins: () => void this.begin(work),
      failed: (problem, error) => this.#held(work, problem, !isSilence(error)),
    };
  }

  /** The longest wait first. */
  get hanging(): readonly StorageWait[] {
    const named = this.#waits.values().filter(({ message }) => message !== "");
    return named.toSorted((a, b) => a.sinceMonotonicMs - b.sinceMonotonicMs);
  }

  /** Drops the pod's waits, except for the teardown of its volumes. */
  forget(uid: string, operations: readonly StorageWork["operation"][] = allWork): void {
    for (const [key, wait] of this.#waits.entries()) {
      if (wait.pod?.uid === uid && operations.includes(wait.operation)) this.#end(key, wait);
    }
  }

  /** Work on volumes has ended: nothing is reported from here on. */
  close(): void {
    this.#silences[Symbol.dispose]();
    this.#waits.clear();
  }

  #start(key: string, work: StorageWork): Wait {
    const wait: Wait = { ...work, sinceMonotonicMs: 0, timer: undefined, message: "", held: "" };
    this.#waits.set(key, wait);
    return wait;
  }

  /** From now on nothing answers. */
  #listen(wait: Wait): void {
    const { pod, volume, driver, operation } = wait;
    wait.sinceMonotonicMs = this.#clock.monotonic();
    wait.timer = this.#silences.at(wait.sinceMonotonicMs + namedAfterMs, () => {
      wait.timer = undefined;
      this.#heldOver(wait);
      const why = this.#explain(wait);
      const silence = `its ${workNouns[operation]} has not returned within 30 s${why === undefined ? "" : `: ${why}`}`;
      wait.message = `volume ${volume} (${driver}) does not answer: ${silence}`;
      this.#record("VolumeSilent", wait.message, pod);
      this.#log.warn("storage does not answer", { ...pod, volume, driver, operation });
    });
  }

  /** An attempt failed and will be repeated: its wait has a reason, and with an answer it is not silent. */
  #held(work: StorageWork, problem: string, answered: boolean): void {
    const wait = this.#waits.get(keyOf(work));
    if (wait === undefined) return;
    if (answered) this.#answered(wait);
    const held = `volume ${work.volume} (${work.driver}) ${problem}`;
    if (wait.held === held) return;
    this.#heldOver(wait);
    wait.held = held;
    this.#record("VolumeHeld", held, work.pod);
  }

  #end(key: string, wait: Wait): void {
    this.#waits.delete(key);
    this.#heldOver(wait);
    this.#answered(wait);
  }

  #answered(wait: Wait): void {
    wait.timer?.[Symbol.dispose]();
    wait.timer = undefined;
    if (wait.message !== "") this.#record("VolumeSilenceOver", wait.message, wait.pod);
    wait.message = "";
  }

  #heldOver(wait: Wait): void {
    if (wait.held !== "") this.#record("VolumeHeldOver", wait.held, wait.pod);
    wait.held = "";
  }

  #record(
    what: "VolumeHeld" | "VolumeHeldOver" | "VolumeSilent" | "VolumeSilenceOver",
    message: string,
    pod: PodRef | undefined,
  ): void {
    this.#journal.record({ kind: "observation", what, message, ...(pod && { pod }) });
  }
}

function keyOf({ pod, volume, operation }: StorageWork): string {
  return `${pod?.uid ?? ""} ${volume} ${operation}`;
}
