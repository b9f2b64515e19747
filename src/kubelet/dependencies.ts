import type { PodUid } from "../base/ids.ts";
import type { NodePressure } from "../eviction/pressure-monitor.ts";
import type { JournalEntry, Recorder } from "../journal/entry.ts";
import type { Observer } from "../journal/observer.ts";
import type { ClusterHooks } from "../pods/cluster-hooks.ts";
import type { DecisionRecorder } from "../pods/decision-recorder.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import type { TrackedCri } from "../runtime-service/deadlines.ts";
import type { RuntimeHandlerInfo } from "../runtime-service/features.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import type { LogOwners } from "../runtime/operations/node-garbage.ts";
import type { ClusterVolumes } from "../volumes/volume-manager.ts";
import type { ApiAccess } from "./api-access.ts";
import type { Room } from "./room.ts";

export interface KubeletDependencies {
  readonly ports: Omit<Ports, "network">;
  /** With deadlines. */
  readonly cri: TrackedCri;
  readonly journal: Recorder;
  /** Observations of earlier runs, as far as the journal still has them. Undefined: none. */
  readonly journaled?: (() => readonly JournalEntry[]) | undefined;
  readonly log: Logger;
  /** ConfigMaps and Secrets. */
  readonly objects: ObjectLookup;
  readonly sourcesReady: (source?: string) => boolean;
  /** Which pods of the runtime may be removed when no source wants them. */
  readonly owns: (uid: PodUid) => Promise<boolean>;
  /** The runtime's handlers at the start; in a cluster, the runtime is asked again while it runs. */
  readonly handlers: readonly RuntimeHandlerInfo[];
  /** Undefined on a node that is in no cluster. */
  readonly cluster?: ClusterHooks | undefined;
  /** Volumes beyond the node; undefined on a node that is in no cluster. */
  readonly volumes?: ClusterVolumes | undefined;
  /** Undefined on a node that is in no cluster. */
  readonly api?: ApiAccess | undefined;
  /** Undefined: the machine is not observed. */
  readonly pressure?: NodePressure | undefined;
  /** Identifies the owners of unknown pods' logs; undefined: such logs stay. */
  readonly logOwners?: (() => Promise<LogOwners>) | undefined;
  /** Beyond what every kubelet has. */
  readonly rooms?: readonly Room[] | undefined;
  readonly recorder?: DecisionRecorder | undefined;
  readonly observer?: Observer | undefined;
}
