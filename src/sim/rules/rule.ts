import type { Pod } from "../../api/pod.ts";
import type { SimClock } from "../clock.ts";
import type { SimEntry, SimNode } from "../life/node.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import type { WorldChange } from "../world-model.ts";

/** A pod that is no longer desired. */
export interface Unwanted {
  readonly sinceMs: number;
  /** The run that was notified. Later ones find an orphan and give it less time. */
  readonly life: number;
  /**
   * The node was running when it was to be notified, and had found the remains of earlier runs: before, it can start
   * nothing.
   */
  readonly reachedNode: boolean;
  /** It was already being stopped for another reason. */
  readonly isEnding: boolean;
  /** Undefined: the pod's own. */
  readonly graceSeconds?: number | undefined;
}

/**
 * What rules may see: the desired state, the machine's history, and podwright's reports; not podwright's internal
 * state.
 */
export interface Scene {
  readonly clock: SimClock;
  readonly world: RuntimeWorld;
  readonly node: SimNode;
  /** Every pod that was ever desired, in its last version, by UID. */
  readonly pods: ReadonlyMap<string, Pod>;
  /** Pods that are no longer desired. */
  readonly unwanted: ReadonlyMap<string, Unwanted>;
}

/** After this time all is well again after faults: the longest deadline of a call that hung before, and a little. */
export const recoveredMs = 150_000;

/** The pod is ending, and may not have been inspected since: its newest instance may be mistaken for the one before. */
export function isUnseen({ clock, node }: Scene, uid: string): boolean {
  return node.soundSinceMs + recoveredMs > clock.nowMs && node.isEnding(uid);
}

/** Reports a broken rule with details. */
export type Break = (rule: string, detail: string) => void;

/**
 * An invariant that holds under all faults. It observes events in order, and reports violations. It keeps its own
 * memory, because the runtime forgets what is removed.
 */
export interface Rule {
  /** A change in the runtime: the truth. */
  change?(change: WorldChange): void;
  /** An entry of podwright's journal. */
  entry?(entry: SimEntry): void;
  /** Everything of the pod is gone, and it is desired again under the same UID. */
  reborn?(uid: string): void;
  /** The manifest of a desired pod changes. */
  changed?(before: Pod | undefined, after: Pod): void;
  /** A container of the pod was removed by others: podwright cannot know its state any more. */
  tampered?(uid: string): void;
  /** podwright is being restarted while all is well, until the second call. */
  calm?(isCalm: boolean): void;
  /** Long after the last fault: what differs from the desired state. Repeated until empty. */
  disagreements?(): readonly string[] | Promise<readonly string[]>;
  /** All is quiet: the final check. */
  atRest?(): void | Promise<void>;
}

export type RuleMaker = (scene: Scene, broken: Break) => Rule;
