import type { Act } from "./stage.ts";

/** The cluster's actions on pods, in addition to those on every node. */
const workload = {
  /** Deleted again, with a shorter grace period. */
  hurryPod: ({ cluster }, random) => {
    const uid = random.pickFrom(cluster?.ending() ?? []);
    if (uid !== undefined) cluster?.delete(uid, random.integer(1, 5));
  },
  /** Removed from the API server at once, whatever runs (kubectl delete --force). */
  forcePod: ({ cluster, node }, random) => {
    const uid = random.pickFrom([...(cluster?.ending() ?? []), ...node.desired.keys()]);
    if (uid !== undefined && cluster?.isStatic(uid) === false) cluster.delete(uid, 0);
  },
  evictPod: ({ cluster, node }, random) => {
    const uid = random.pickFrom([...node.desired.keys()]);
    if (uid !== undefined) cluster?.evict(uid);
  },
  deleteMirror: ({ cluster }, random) => cluster?.deleteMirror(random.chance(0.5) ? 0 : undefined),
  addEphemeral: ({ cluster, node }, random) => {
    const uid = random.pickFrom([...node.desired.keys()]);
    if (uid !== undefined) cluster?.addEphemeral(uid, random);
  },
  /** Others write into the status of a pod. */
  writeCondition: ({ cluster, node }, random) => {
    const uid = random.pickFrom([...node.desired.keys()]);
    if (uid !== undefined) cluster?.writeCondition(uid, random.pick(["Ready", "example.com/gate"]));
  },
  changeServices: ({ cluster }) => cluster?.changeServices(),
} satisfies Record<string, Act>;

/** Lasting faults between node and API server. */
const windows = {
  apiDown: (stage, random) => {
    const { cluster } = stage;
    if (cluster === undefined || cluster.server.down !== undefined) return;
    const how = random.pick(["refuses", "silent"]);
    stage.strike(`API server ends (${how})`);
    cluster.server.goDown(how);
    const forMs = random.pick([
      random.integer(100, 5000),
      random.integer(5000, 60_000),
      random.integer(60_000, 600_000),
    ]);
    const compacted = random.chance(0.5);
    stage.clock.schedule("the API server to be back", forMs, () => cluster.server.comeUp(compacted));
  },
  /** The history is compacted while clients are connected. */
  apiCompacts: ({ cluster }) => cluster?.server.registry.store.compact(),
  apiCut: (stage) => {
    const { cluster } = stage;
    if (cluster === undefined || cluster.server.down !== undefined) return;
    stage.strike("API connections cut");
    cluster.server.goDown("refuses");
    cluster.server.comeUp(false);
  },
  apiSlow: ({ faults }, random) =>
    faults.begin({ apiDelayMaxMs: random.pick([500, 5000, 40_000]) }, random.integer(5000, 180_000)),
  apiFailing: ({ faults }, random) => {
    const most = random.pick([0.1, 0.5, 1]);
    faults.begin({ apiFails: random.uniform() * most }, random.integer(5000, 180_000));
  },
  apiLying: ({ faults }, random) => faults.begin({ apiLies: random.pick([0.1, 0.5]) }, random.integer(5000, 120_000)),
  apiConflicts: ({ faults }, random) =>
    faults.begin({ apiConflicts: random.pick([0.1, 0.9]) }, random.integer(5000, 60_000)),
  apiBusy: ({ faults }, random) => faults.begin({ apiBusy: random.pick([0.1, 0.9]) }, random.integer(5000, 120_000)),
  apiForgetful: ({ faults }, random) =>
    faults.begin({ apiForgets: 0.5, apiCuts: 0.2 }, random.integer(10_000, 120_000)),
  apiStale: ({ faults }, random) =>
    faults.begin({ apiStale: 0.8, apiCuts: 0.2, apiForgets: 0.8 }, random.integer(10_000, 180_000)),
  apiCuts: ({ faults }, random) => faults.begin({ apiCuts: random.pick([0.1, 0.9]) }, random.integer(5000, 120_000)),
  apiHalfDead: ({ faults }, random) =>
    faults.begin({ apiHalfDead: random.pick(["noticed", "unnoticed"]) }, random.integer(1000, 120_000)),
} satisfies Record<string, Act>;

export const clusterActs = { ...workload, ...windows };

export type ClusterStepKind = keyof typeof clusterActs;

/** Relative frequency of each kind. */
export const clusterWeights: Readonly<Record<ClusterStepKind, number>> = {
  hurryPod: 4,
  forcePod: 4,
  evictPod: 3,
  deleteMirror: 3,
  addEphemeral: 3,
  writeCondition: 3,
  changeServices: 1,
  apiDown: 6,
  apiCompacts: 2,
  apiCut: 3,
  apiSlow: 3,
  apiFailing: 3,
  apiLying: 4,
  apiConflicts: 2,
  apiBusy: 3,
  apiForgetful: 3,
  apiStale: 2,
  apiCuts: 3,
  apiHalfDead: 4,
};
