import type { Pod } from "../../api/pod.ts";
import type { SimClock } from "../clock.ts";
import type { SimRandom } from "../random.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import type { FaultWindows } from "./faults.ts";
import type { SimCluster } from "./cluster.ts";
import type { SimNode } from "./node.ts";

/** What steps act on. */
export interface Stage {
  readonly clock: SimClock;
  readonly world: RuntimeWorld;
  readonly node: SimNode;
  /** Undefined: the node stands alone. */
  readonly cluster: SimCluster | undefined;
  readonly faults: FaultWindows;
  /** A random pod that was never there before; with a name it takes that. Of several of one step each has its number. */
  readonly newPod: (random: SimRandom, name?: string, number?: number) => Pod;
  readonly want: (pod: Pod) => void;
  readonly change: (pod: Pod) => void;
  /** With a grace other than the pod's own. */
  readonly unwant: (uid: string, graceSeconds?: number) => void;
  /** Told when what the runtime knows of a pod is not what it was: nobody can tell any more how its containers ended. */
  readonly tamper: (uid: string) => void;
  /** Noted for who wants to know what has gone wrong. */
  readonly strike: (fault: string) => void;
}

export type Act = (stage: Stage, random: SimRandom) => void;
