import type { EvictionConfig } from "../../eviction/manager.ts";
import type { JournalEntry } from "../../journal/entry.ts";
import type { Observer } from "../../journal/observer.ts";
import type { KubeletConfig } from "../../kubelet/config.ts";
import type { Room } from "../../kubelet/room.ts";
import type { DecisionRecorder } from "../../pods/decision-recorder.ts";
import type { PodUpdate } from "../../sources/source.ts";
import type { SimClock } from "../clock.ts";
import type { MemoryFiles } from "../files.ts";
import type { SimRandom } from "../random.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import type { Surroundings } from "./build-kubelet.ts";
import type { SimCluster } from "./cluster.ts";
import type { FaultWindows } from "./faults.ts";
import { usualConfig } from "./node-config.ts";

/** What rooms of a simulated node are made of. */
export type RoomParts = Pick<Surroundings, "record" | "ports"> & { readonly isAlive: () => boolean };

/** Without what may be left out all is well, and nobody watches. */
export interface SimNodeSettings {
  readonly clock: SimClock;
  readonly world: RuntimeWorld;
  readonly random: SimRandom;
  readonly files?: MemoryFiles;
  readonly config?: KubeletConfig;
  readonly faults?: FaultWindows;
  /** Told of each fault that strikes. */
  readonly onFault?: (kind: string) => void;
  /** Told of each entry of the journal. */
  readonly onEntry?: (entry: JournalEntry & { readonly atMs: number }) => void;
  readonly recorder?: DecisionRecorder | undefined;
  readonly observer?: Observer | undefined;
  /** Undefined: the node stands alone. */
  readonly cluster?: SimCluster | undefined;
  /** A node of a cluster: told of each change of what is wanted, when podwright learns of it. */
  readonly onUpdate?: (update: PodUpdate) => void;
  /** Rooms that each of its lives has beyond what every kubelet has. */
  readonly makeRooms?: (parts: RoomParts) => readonly Room[];
  /** When its pods are evicted; undefined: never. */
  readonly evictions?: EvictionConfig | undefined;
  /** Told of each request to the API server. */
  readonly onRequest?: (what: string) => void;
}

/** All is well, and nobody watches. */
export const calmSettings = {
  config: usualConfig,
  onFault: () => {},
  onEntry: () => {},
  recorder: undefined,
  observer: undefined,
  cluster: undefined,
  onUpdate: () => {},
  makeRooms: () => [],
  evictions: undefined,
  onRequest: () => {},
} satisfies Partial<SimNodeSettings>;
