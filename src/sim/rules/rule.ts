import type { Pod } from "../../api/pod.ts";
import type { SimClock } from "../clock.ts";
import type { SimEntry, SimNode } from "../life/node.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import type { WorldChange } from "../world-model.ts";

/** A pod that is wanted no longer. */
export interface Unwanted {
  readonly sinceMs: number;
  /** The node's life in which it was told. Later ones find an orphan and give it less time. */
  readonly life: number;
  /** The node was there to be told, and had found what earlier lives left: before, it can begin nothing. */
  readonly told: boolean;
  /** It was being stopped before, for another reason. */
  readonly isEnding: boolean;
  /** Undefined: the pod's own. */
  readonly graceSeconds?: number | undefined;
}

/** What rules may look at: what was wanted, what the machine did, what podwright says. Nothing of podwright's own mind. */
export interface Scene {
  readonly clock: SimClock;
  readonly world: RuntimeWorld;
  readonly node: SimNode;
  /** Every pod that was ever wanted, as it was last wanted, by UID. */
  readonly pods: ReadonlyMap<string, Pod>;
  /** Those that are to go. */
  readonly unwanted: ReadonlyMap<string, Unwanted>;
}

/** Past this all is well again after faults: the longest deadline of a call that hung before, and a little. */
export const recoveredMs = 150_000;

/** The pod ends, and may not have been looked at since: an instance that came last is taken for the one before. */
export function isUnseen({ clock, node }: Scene, uid: string): boolean {
  return node.soundSinceMs + recoveredMs > clock.nowMs && node.isEnding(uid);
}

/** Says that a rule was broken, and by what. */
export type Break = (rule: string, detail: string) => void;

/**
 * An invariant under all faults. It observes events in order, and reports when it is broken; it keeps its own memory,
 * since the runtime forgets what is removed.
 */
export interface Rule {
  /** Something changed in the runtime: the truth. */
  change?(change: WorldChange): void;
  /** Podwright wrote to its journal. */
  entry?(entry: SimEntry): void;
  /** Everything of the pod is gone, and it is wanted again under the same UID. */
  reborn?(uid: string): void;
  /** A wanted pod is to be different from now on. */
  changed?(before: Pod | undefined, after: Pod): void;
  /** Others have taken a container of the pod away: podwright can't know any more what it was. */
  tampered?(uid: string): void;
  /** Podwright is being started again while all is well: until it is said that this is over. */
  calm?(isCalm: boolean): void;
  /** Faults have ended long ago: what is not as wanted yet. Asked again and again until nothing is left. */
  disagreements?(): readonly string[] | Promise<readonly string[]>;
  /** All is quiet; the last look. */
  atRest?(): void | Promise<void>;
}

export type RuleMaker = (scene: Scene, broken: Break) => Rule;
