import type {
  EvictionView,
  GarbageView,
  GaugesEvent,
  HelloEvent,
  LifeView,
  NodeReading,
  NodeView,
  PodDetail,
  PodReading,
} from "../src/page/view.ts";
import type { Link, Preview } from "./connection.ts";
import type { Filter } from "./filter.ts";

/** An hour of the node's readings, one per 10 s; for pods as many as the first event has. */
const keptReadings = 360;
const keptPodReadings = 90;

/** All that is shown. */
export interface State {
  link: Link;
  /** When the connection was lost, by this machine's clock. */
  lostAt: number | undefined;
  /** The node's clock minus this machine's, ms. */
  offsetMs: number;
  node: NodeView | undefined;
  readonly pods: Map<string, PodDetail>;
  capacity: GaugesEvent["capacity"];
  readings: NodeReading[];
  readonly podReadings: Map<string, PodReading[]>;
  /** UIDs of the pods that are unfolded. */
  readonly open: Set<string>;
  readonly lives: Map<string, LifeView>;
  readonly previews: Previews;
  filter: Filter;
}

/** What is shown of each once it is unfolded. */
export interface Previews {
  evictions: Preview<EvictionView> | undefined;
  garbage: Preview<GarbageView> | undefined;
}

export function emptyState(): State {
  return {
    link: { state: "connecting" },
    lostAt: undefined,
    offsetMs: 0,
    node: undefined,
    pods: new Map(),
    capacity: {},
    readings: [],
    podReadings: new Map(),
    open: new Set(),
    lives: new Map(),
    previews: { evictions: undefined, garbage: undefined },
    filter: { text: "", namespace: "", mood: "all" },
  };
}

export function takeHello(state: State, { node, pods, history }: HelloEvent): void {
  state.node = node;
  state.pods.clear();
  for (const pod of pods) state.pods.set(pod.uid, pod);
  state.capacity = history.capacity;
  state.readings = [...history.node];
  state.podReadings.clear();
  for (const [uid, readings] of Object.entries(history.pods)) state.podReadings.set(uid, [...readings]);
}

export function takeGauges(state: State, { capacity, node, pods }: GaugesEvent): void {
  state.capacity = capacity;
  state.readings = [...state.readings, node].slice(-keptReadings);
  for (const uid of state.podReadings.keys()) if (!(uid in pods)) state.podReadings.delete(uid);
  for (const [uid, reading] of Object.entries(pods)) {
    state.podReadings.set(uid, [...(state.podReadings.get(uid) ?? []), reading].slice(-keptPodReadings));
  }
}
