import type { Pod } from "../../api/pod.ts";
import type { SimClock } from "../clock.ts";
import type { SimRandom } from "../random.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import type { FaultWindows } from "./faults.ts";
import type { SimCluster } from "./cluster.ts";
import type { SimNode } from "./node.ts";

/** The objects that steps act on. */
export interface Stage {
  readonly clock: SimClock;
  readonly world: RuntimeWorld;
  readonly node: SimNode;
  /** Undefined: a standalone node. */
  readonly cluster: SimCluster | undefined;
  readonly faults: FaultWindows;
  /** A new random pod, optionally with a given name. Several pods of one step are numbered. */
  readonly newPod: (random: SimRandom, name?: string, number?: number) => Pod;
  readonly want: (pod: Pod) => void;
  readonly change: (pod: Pod) => void;
  /** With a grace period other than the pod's own. */
  readonly unwant: (uid: string, graceSeconds?: number) => void;
  /** Called when the runtime's knowledge of a pod is destroyed: how its containers ended is unknown then. */
  readonly tamper: (uid: string) => void;
  /** Records a fault. */
  readonly strike: (fault: string) => void;
}

export type Act = (stage: Stage, random: SimRandom) => void;
