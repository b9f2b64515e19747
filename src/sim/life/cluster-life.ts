import type { PodUpdate } from "../../sources/source.ts";
import type { SimClock } from "../clock.ts";
import { SimRandom } from "../random.ts";
import type { Referee } from "../rules/referee.ts";
import { asStatic, SimCluster } from "./cluster.ts";
import type { Faults } from "./faults.ts";
import type { SimNode } from "./node.ts";
import { drawApiPod, withoutReferences } from "./pod-references.ts";
import { stepUid } from "./plan.ts";
import { drawPod, type PodWishes } from "./pods.ts";
import type { Stage } from "./stage.ts";
import { growsVolumes, hasDevices, hasDrivers } from "./subjects.ts";

const staticPrefix = "static-";

/** The cluster of a seed. */
export function drawCluster(seed: number, clock: SimClock): SimCluster {
  const random = new SimRandom(seed ^ 0x0c15_7e12);
  const skewMs = random.pick([0, 0, random.integer(-7_200_000, 7_200_000)]);
  const [streamsLists, pageSize] = [random.chance(0.7), random.pick([500, 2])];
  const cluster = new SimCluster({ clock, skewMs, streamsLists, pageSize }, random.fork());
  if (hasDrivers(seed)) cluster.addStorage(SimRandom.named(seed, "storage"), growsVolumes(seed), hasDevices(seed));
  return cluster;
}

/** The permanent faults between the node, its manifests and the API server in a seed's life. */
export function clusterBase(seed: number): Partial<Faults> {
  const random = new SimRandom(seed ^ 0x00fa_0175);
  const manifestDelayMaxMs = random.chance(0.3) ? 20_000 : 0;
  if (random.chance(0.5)) return { manifestDelayMaxMs };
  const upTo = (most: number): number => random.uniform() * most;
  const forgets = random.chance(0.3) ? 0.2 : 0;
  return {
    ...{ apiDelayMaxMs: upTo(90), apiFails: upTo(0.05), apiLies: upTo(0.05), apiBusy: upTo(0.02) },
    manifestDelayMaxMs,
    apiConflicts: upTo(0.02),
    ...{ apiCuts: upTo(0.05), apiForgets: forgets },
  };
}

/** podwright has learned of the desired state, so it must act from now on. */
export function tellReferee(referee: Referee, node: SimNode, { op, pod, source }: PodUpdate): void {
  const { uid, deletionGracePeriodSeconds } = pod.metadata;
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  if (op === "remove") {
    if (!referee.isUnwanted(uid)) referee.unwanted(uid, node.isEnding(uid));
    return;
  }
  if (source === "file" && op === "add") referee.wanted(pod);
  else referee.changed(pod);
  if (!isDeleted) return;
  // A pod that is already being stopped keeps its deadline, or gets an earlier one.
  referee.unwanted(uid, op === "update" && node.isEnding(uid), deletionGracePeriodSeconds);
}

/** The stage of a node in a cluster: the desired state is at the API server, or in a static pod's manifest. */
export function clusterStage(
  stage: Stage,
  cluster: SimCluster,
  { index, referee, wishes }: { readonly index: number; readonly referee: Referee; readonly wishes: PodWishes },
): Stage {
  const { node } = stage;
  // This API server has no claims.
  const without = new Set([...wishes.without, "claims"]);
  return {
    ...stage,
    newPod: (random, given, number = 0) => {
      const draws = random.fork();
      // A static pod is replaced by a static pod.
      const isStatic = given?.startsWith(staticPrefix) ?? draws.chance(wishes.always.has("static") ? 0.8 : 0.2);
      const name = given ?? `${isStatic ? staticPrefix : ""}pod${index}`;
      const pod = drawPod(name, stepUid(index, number), random, { ...wishes, without });
      if (isStatic) return asStatic(withoutReferences(pod));
      return wishes.without.has("references") ? pod : drawApiPod(pod, draws);
    },
    want: (pod) => {
      if (!cluster.want(pod)) return;
      referee.changed(pod);
      node.staticsChanged();
    },
    change: (pod) => {
      cluster.change(pod);
      node.staticsChanged();
    },
    unwant: (uid, graceSeconds) => {
      cluster.delete(uid, graceSeconds);
      node.staticsChanged();
    },
  };
}
