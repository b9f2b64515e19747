import { lifeStarted } from "../../journal/entry.ts";
import { recoveredMs, type Rule, type RuleMaker } from "./rule.ts";

interface Sight {
  readonly atMs: number;
  readonly life: number;
  readonly wallOffsetMs: number;
  /** There was time and a disk to write it down. */
  isWritten: boolean;
}

/** Within so long what is known of a pod is on the disk. */
const writtenMs = 10_000;
/** One look at the pod, by slow calls. */
const noticedWithinMs = 20_000;
const roundingMs = 5;
/** Before it is let in, or while it is behind another one of its name, nobody looks at a pod. */
const holds: ReadonlySet<string> = new Set(["AdmissionWaits", "PodWaits"]);

/** A pod is ended for its `activeDeadlineSeconds` when they are over: no sooner, and no later while nothing goes wrong. */
export const deadlines: RuleMaker = ({ clock, node, pods }, broken): Rule => {
  /** When podwright first saw each pod; undefined once that can't be told, or is not what counts. */
  const first = new Map<string, Sight | undefined>();
  /** When each pod was first wanted, before which nobody can have seen it; undefined where that is not what counts. */
  const wanted = new Map<string, Pick<Sight, "atMs" | "wallOffsetMs"> | undefined>();
  /** Simulated ms of the last entry: by then the life before was still there. */
  let lastMs = 0;
  /** Simulated ms at which this life began. */
  let lifeMs = 0;
  const offsetMs = (): number => clock.wallMs - clock.nowMs;

  /** A new life goes by what was written down, and by the wall clock. */
  function begin(): void {
    for (const [uid, sight] of first) {
      if (sight === undefined) continue;
      sight.isWritten ||= sight.atMs + writtenMs < lastMs && node.diskFaultMs < sight.atMs;
      if (!sight.isWritten || sight.wallOffsetMs !== offsetMs()) first.set(uid, undefined);
    }
  }

  /** A new life waits for no call that hung before it. */
  function wasSoundBefore(atMs: number): boolean {
    const isSinceStart = node.soundSinceMs <= lifeMs && lifeMs <= atMs;
    return isSinceStart || node.soundSinceMs + recoveredMs < atMs;
  }

  function wantedMs(uid: string): number | undefined {
    const want = wanted.get(uid);
    return want?.wallOffsetMs === offsetMs() ? want.atMs : undefined;
  }

  function ended(uid: string, atMs: number): void {
    const sight = first.get(uid);
    const seconds = pods.get(uid)?.spec.activeDeadlineSeconds;
    if (sight === undefined || seconds === undefined) return;
    const lateMs = atMs - sight.atMs - seconds * 1000;
    // Alone, a node says nothing of a pod that it has seen before it does something for it.
    const sinceMs = node.cluster === undefined ? wantedMs(uid) : sight.atMs;
    const earlyMs = sinceMs === undefined ? 0 : sinceMs + seconds * 1000 - atMs;
    if (earlyMs > roundingMs) broken("deadline", `${uid} was ended ${earlyMs} ms before its deadline`);
    // A call that hung before may be what the first look waited for, or a later one.
    const isSound = wasSoundBefore(sight.life === node.lives ? sight.atMs : atMs - lateMs);
    if (isSound && lateMs > noticedWithinMs) broken("deadline", `${uid} was ended ${lateMs} ms after its deadline`);
  }

  return {
    reborn: (uid) => {
      first.set(uid, undefined);
      wanted.set(uid, undefined);
    },
    changed: (before, after) => {
      const { uid } = after.metadata;
      if (before === undefined) {
        wanted.set(uid, wanted.has(uid) ? undefined : { atMs: clock.nowMs, wallOffsetMs: offsetMs() });
      } else if (before.spec.activeDeadlineSeconds !== after.spec.activeDeadlineSeconds) {
        first.set(uid, undefined);
        wanted.set(uid, undefined);
      }
    },
    entry: ({ kind, what, pod, atMs, cause }) => {
      if (what === lifeStarted) {
        begin();
        lifeMs = atMs;
      }
      lastMs = atMs;
      if (pod === undefined) return;
      const { uid } = pod;
      if (holds.has(what)) first.set(uid, undefined);
      const isSight = node.cluster === undefined || (what === "PodAdded" && kind === "input");
      if (isSight && !first.has(uid)) {
        first.set(uid, { atMs, life: node.lives, wallOffsetMs: offsetMs(), isWritten: false });
      }
      if (what === "PodTerminating" && cause?.code === "DeadlineExceeded") ended(uid, atMs);
    },
  };
};
