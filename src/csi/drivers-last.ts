import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import type { EndingWorker, StopHold } from "../pods/pod-termination.ts";
import type { Clock } from "../ports/clock.ts";
import type { CsiUse } from "./csi-room.ts";

export interface DriversLastDependencies {
  readonly clock: Pick<Clock, "monotonic">;
  readonly journal: Recorder;
  /** Whether the pod is a driver. */
  readonly serves: (pod: Pod) => boolean;
  /** What drivers are needed for at present. */
  readonly use: () => CsiUse;
}

/** Interval of the looks while a stop is held. */
const lookMs = 200;
/** Within this time the stops of the driver's users count as requested together with its own. */
const togetherMs = 1000;
/** How long drivers have to release a pod's volumes, after the pod's grace period. */
const releaseMs = 120_000;
/** The same if the driver is to stop immediately. */
const hurriedReleaseMs = 3000;

interface HeldStop {
  readonly sinceMs: number;
  /** With a grace period of 0. */
  hurriedSinceMs: number | undefined;
  /** Of the latest user. */
  limitMs: number;
  /** What the journal has last. */
  told: string;
  isOver: boolean;
}

/** What needs the drivers besides the drivers themselves. */
interface Users {
  /** Pods that end, and volumes that are being unstaged. */
  readonly ending: readonly string[];
  /** Pods that are not asked to stop. */
  readonly running: readonly string[];
  /** Monotonic ms by which the last of the ending pods is killed. */
  readonly killedAtMs: number;
}

/**
 * Stops drivers that are pods of this node after the pods with CSI volumes that end at the same time: only a driver that
 * runs can release its volumes.
 */
export class DriversLast {
  readonly #deps: DriversLastDependencies;
  readonly #stops = new Map<PodUid, HeldStop>();
  #workers: () => readonly EndingWorker[] = () => [];

  constructor(deps: DriversLastDependencies) {
    this.#deps = deps;
  }

  connect({ workers }: { readonly workers: { list(): readonly EndingWorker[] } }): void {
    this.#workers = () => workers.list();
  }

  remove(uid: PodUid): void {
    this.#stops.delete(uid);
  }

  /** Running pods with CSI volumes, if the pod is a driver. */
  served(pod: Pod): PodRef[] {
    if (!this.#deps.serves(pod)) return [];
    const { pods } = this.#deps.use();
    const running = this.#workers().filter((worker) => pods.has(worker.uid) && !isEnding(worker));
    return running.filter(({ uid }) => uid !== pod.metadata.uid).map(({ ref }) => ref);
  }

  readonly holdsStop: StopHold = ({ ref, pod }, { cause, graceSeconds }) => {
    if (pod === undefined || !this.#deps.serves(pod)) return undefined;
    const nowMs = this.#deps.clock.monotonic();
    const stop = this.#stopOf(ref.uid, nowMs);
    if (stop.isOver) return undefined;
    const { ending, running, killedAtMs } = this.#users();
    if (graceSeconds === 0) stop.hurriedSinceMs ??= nowMs;
    stop.limitMs = Math.max(stop.limitMs, killedAtMs + releaseMs);
    const hurriedMs = stop.hurriedSinceMs === undefined ? Infinity : stop.hurriedSinceMs + hurriedReleaseMs;
    const untilMs = Math.min(stop.limitMs, hurriedMs);
    if (ending.length > 0 && nowMs < untilMs) {
      this.#tell("DriverWaits", `the driver is stopped after its users: ${ending.join(", ")}`, { ref, cause, stop });
      return Math.min(untilMs, nowMs + lookMs);
    }
    if (running.length > 0 && nowMs < stop.sinceMs + togetherMs) return nowMs + lookMs;
    stop.isOver = true;
    const left = [...ending, ...running];
    const message = `the driver is stopped before its users: ${left.join(", ")}; it has to run again to release their volumes`;
    if (left.length > 0) this.#tell("DriverStopsFirst", message, { ref, cause, stop });
    return undefined;
  };

  #stopOf(uid: PodUid, nowMs: number): HeldStop {
    const known = this.#stops.get(uid);
    if (known !== undefined) return known;
    const limitMs = nowMs + releaseMs;
    const stop: HeldStop = { sinceMs: nowMs, hurriedSinceMs: undefined, limitMs, told: "", isOver: false };
    this.#stops.set(uid, stop);
    return stop;
  }

  #users(): Users {
    const { pods, unstaging } = this.#deps.use();
    const workers = this.#workers().filter(({ uid }) => pods.has(uid));
    // A driver that uses another's volumes would wait for that one while it is waited for.
    const users = workers.filter(({ pod }) => pod === undefined || !this.#deps.serves(pod));
    const [ending, running] = [users.filter(isEnding), users.filter((worker) => !isEnding(worker))];
    const kills = ending.map(({ state }) => ("killAtMs" in state ? state.killAtMs : 0));
    return {
      ending: [...ending.map(nameOf), ...unstaging.map((name) => `volume ${name}`)],
      running: running.map(nameOf),
      killedAtMs: Math.max(0, ...kills),
    };
  }

  #tell(
    what: "DriverWaits" | "DriverStopsFirst",
    message: string,
    { ref, cause, stop }: { readonly ref: PodRef; readonly cause: Cause; readonly stop: HeldStop },
  ): void {
    if (stop.told === message) return;
    stop.told = message;
    this.#deps.journal.record({ kind: "decision", what, message, pod: ref, cause });
  }
}

function isEnding({ state }: EndingWorker): boolean {
  return state.kind !== "syncing";
}

function nameOf({ ref: { namespace, name } }: EndingWorker): string {
  return `pod ${namespace}/${name}`;
}
