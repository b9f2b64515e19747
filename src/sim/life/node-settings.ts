import type { EvictionConfig } from "../../eviction/manager.ts";
import type { ImageCollectorConfig } from "../../images/image-collector.ts";
import type { JournalEntry } from "../../journal/entry.ts";
import type { Observer } from "../../journal/observer.ts";
import type { KubeletConfig } from "../../kubelet/config.ts";
import type { Room } from "../../kubelet/room.ts";
import type { ApiClient } from "../../api-client/client.ts";
import type { DecisionRecorder } from "../../pods/decision-recorder.ts";
import type { PodUpdate } from "../../sources/source.ts";
import type { SimClock } from "../clock.ts";
import type { MemoryFiles } from "../files.ts";
import type { Gate } from "../gate.ts";
import type { SimRandom } from "../random.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import type { Surroundings } from "./build-kubelet.ts";
import type { SimCluster } from "./cluster.ts";
import type { FaultWindows } from "./faults.ts";
import { usualImagePolicy } from "./image-room.ts";
import { usualConfig } from "./node-config.ts";

/** The eviction configuration of a simulated node. */
export interface SimEvictionConfig extends EvictionConfig {
  /** Evictions by changed settings wait for a confirmation. */
  readonly asks: boolean;
  /** The one that it replaced. */
  readonly before?: SimEvictionConfig;
}

/** The parts that rooms of a simulated node use. */
export interface RoomParts extends Pick<Surroundings, "record" | "ports"> {
  readonly isAlive: () => boolean;
  readonly gate: Gate;
  /** Undefined: a standalone node. */
  readonly client: ApiClient | undefined;
  readonly observer: Observer | undefined;
}

/** Defaults: no faults, no observers. */
export interface SimNodeSettings {
  readonly clock: SimClock;
  readonly world: RuntimeWorld;
  readonly random: SimRandom;
  readonly files?: MemoryFiles;
  readonly config?: KubeletConfig;
  readonly faults?: FaultWindows;
  /** Called with each fault. */
  readonly onFault?: (kind: string) => void;
  /** Called with each journal entry. */
  readonly onEntry?: (entry: JournalEntry & { readonly atMs: number }) => void;
  readonly recorder?: DecisionRecorder | undefined;
  readonly observer?: Observer | undefined;
  /** Undefined: a standalone node. */
  readonly cluster?: SimCluster | undefined;
  /** In a cluster: called when podwright learns of a changed pod. */
  readonly onUpdate?: (update: PodUpdate) => void;
  /** Additional rooms of each run. */
  readonly makeRooms?: (parts: RoomParts) => readonly Room[];
  /** Undefined: no evictions. */
  readonly evictions?: SimEvictionConfig | undefined;
  readonly imagePolicy?: ImageCollectorConfig;
  /** Called with each request to the API server. */
  readonly onRequest?: (what: string) => void;
}

/** No faults and no observers. */
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
  imagePolicy: usualImagePolicy,
  onRequest: () => {},
} satisfies Partial<SimNodeSettings>;
