import type { PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";

/** Work on a volume that has to do with its storage. */
export interface StorageWork {
  readonly pod: PodRef;
  /** The name of its directory: the PersistentVolume's, or the pod's for a source in its spec. */
  readonly volume: string;
  /** A driver's name, or that of a kind of volumes: `local`. */
  readonly driver: string;
  readonly operation: "set up" | "tear down" | "measure";
}

/** Work that has not ended for long. */
export interface StorageWait extends StorageWork {
  readonly sinceMonotonicMs: number;
}

/** Work that has not ended after this long is named. */
export const namedAfterMs = 30_000;

interface Wait extends StorageWait {
  /** When it is named. */
  timer: Disposable | undefined;
  message: string;
}

/** Ends work. @param answered false: storage was silent, and the wait lasts until the next try answers */
export type EndOfWork = (answered: boolean) => void;

/**
 * Names volumes whose storage or driver does not answer: in the journal of their pod, and to whoever asks. What nobody
 * names looks like a pod that hangs for no reason.
 */
export class StorageWaits {
  readonly #clock: Clock;
  readonly #journal: Recorder;
  readonly #log: Logger;
  readonly #waits = new Map<string, Wait>();

  constructor(clock: Clock, journal: Recorder, log: Logger) {
    this.#clock = clock;
    this.#journal = journal;
    this.#log = log;
  }

  /** To be ended whatever comes of it. */
  begin(work: StorageWork): EndOfWork {
    const key = keyOf(work);
    const wait = this.#waits.get(key) ?? this.#start(key, work);
    return (answered) => {
      if (answered && this.#waits.get(key) === wait) this.#end(key, wait);
    };
  }

  /** The longest first. */
  get hanging(): readonly StorageWait[] {
    const named = [...this.#waits.values()].filter(({ message }) => message !== "");
    return named.toSorted((a, b) => a.sinceMonotonicMs - b.sinceMonotonicMs);
  }

  /** Nothing of the pod is waited for any more, other than that its volumes are torn down. */
  forget(uid: string, operations: readonly StorageWork["operation"][] = ["set up", "measure", "tear down"]): void {
    for (const [key, wait] of this.#waits) {
      if (wait.pod.uid === uid && operations.includes(wait.operation)) this.#end(key, wait);
    }
  }

  /** Nobody works on volumes any more: nothing is named from here on. */
  close(): void {
    for (const { timer } of this.#waits.values()) timer?.[Symbol.dispose]();
    this.#waits.clear();
  }

  #start(key: string, work: StorageWork): Wait {
    const { pod, volume, driver, operation } = work;
    const wait: Wait = { ...work, sinceMonotonicMs: this.#clock.monotonic(), timer: undefined, message: "" };
    this.#waits.set(key, wait);
    wait.timer = this.#clock.timer(`work on volume ${volume} to be named`, namedAfterMs, () => {
      wait.message = `volume ${volume} (${driver}) does not answer: the try to ${operation} it has not ended in 30 s`;
      this.#journal.record({ kind: "observation", what: "VolumeSilent", message: wait.message, pod });
      this.#log.warn("storage does not answer", { ...pod, volume, driver, operation });
    });
    return wait;
  }

  #end(key: string, wait: Wait): void {
    const { pod, message } = wait;
    wait.timer?.[Symbol.dispose]();
    this.#waits.delete(key);
    if (message !== "") this.#journal.record({ kind: "observation", what: "VolumeSilenceOver", message, pod });
  }
}

function keyOf({ pod, volume, operation }: StorageWork): string {
  return `${pod.uid} ${volume} ${operation}`;
}
