import type { Pod } from "../../api/pod.ts";
import { podUid } from "../../base/ids.ts";
import { type FileSystems, isOfDisk, withContainerFs } from "../../eviction/file-systems.ts";
import { isMet } from "../../eviction/pressure.ts";
import type { StarvedResource } from "../../eviction/thresholds.ts";
import { parseQuantity } from "../../resources/quantity.ts";
import type { SimEvictionConfig } from "./node-settings.ts";
import { machineCapacity } from "../machine-resources.ts";
import { SimRandom } from "../random.ts";
import { simplePod } from "./simple-pod.ts";
import type { Act } from "./stage.ts";
import { askCollection, askConfirmation, askRetry } from "./user-requests.ts";

/** Whether the machine may run short of resources in a seed's life. */
export function isUnderPressure(seed: number): boolean {
  return seed % 9 === 4;
}

const kinds = ["memory", "ephemeral-storage", "inodes", "pids"] as const satisfies readonly StarvedResource[];
const diskResources = ["ephemeral-storage", "inodes"] as const satisfies readonly StarvedResource[];
/** Between the hard and the soft threshold; and usage of pods too low to matter. */
const littleBytes = 0.75 * 2 ** 30;
const smallBytes = 2 ** 20;
/** Of the total capacity. */
const limitBytes = 2 ** 30;

/** The eviction configuration of such a life. */
export function drawEvictions(seed: number): SimEvictionConfig | undefined {
  if (!isUnderPressure(seed)) return undefined;
  const random = SimRandom.named(seed, "evictions");
  const reclaim = random.pick([undefined, { part: 0.02 }]);
  const hard = { graceMs: 0, minReclaim: reclaim };
  const soft = { graceMs: random.pick([5000, 30_000]), minReclaim: reclaim };
  return {
    thresholds: [
      { signal: "memory.available", value: { amount: parseQuantity("500Mi") }, ...hard },
      { signal: "memory.available", value: { amount: parseQuantity("1Gi") }, ...soft },
      { signal: "nodefs.available", value: { part: 0.1 }, ...hard },
      { signal: "imagefs.available", value: { part: 0.15 }, ...soft },
      { signal: "nodefs.inodesFree", value: { part: 0.05 }, ...hard },
      { signal: "pid.available", value: { amount: parseQuantity("1k") }, ...hard },
    ],
    transitionMs: random.pick([30_000, 120_000]),
    maxPodGraceSeconds: random.pick([0, 20]),
    enforcesStorageLimits: true,
    watchesMemory: random.chance(0.3),
    asks: random.chance(0.5),
  };
}

/** Where such a life's images and writable layers are. */
export function drawFileSystems(seed: number): FileSystems {
  if (!isUnderPressure(seed)) return "one";
  return SimRandom.named(seed, "file systems").pick(["one", "one", "one", "imagefs", "split"]);
}

/** Actions on the machine's resources. */
export const pressureActs = {
  /** Each desired pod uses a share of a resource; the sum may exceed the capacity. */
  shareResource: ({ node }, random) => {
    const resource = random.pick([...kinds]);
    const pods = [...node.desired.keys()];
    const share = machineCapacity[resource] / Math.max(1, pods.length);
    for (const uid of pods) node.resources.use(uid, resource, random.uniform() * share * 1.3);
  },
  /** One pod uses more and more of a resource. */
  leakResource: ({ node }, random) => {
    const uid = random.pickFrom([...node.desired.keys()]);
    const resource = random.pick([...kinds]);
    const capacity = machineCapacity[resource];
    const seconds = random.integer(2, 120);
    if (uid !== undefined) node.resources.use(uid, resource, random.uniform() * capacity * 0.5, capacity / seconds);
  },
  /** A process outside of pods uses most of a resource for a while: evicting pods does not help. */
  starveNode: ({ node, clock, strike }, random) => {
    const resource = random.pick([...kinds]);
    strike(`${resource} used up`);
    node.resources.useElsewhere(resource, machineCapacity[resource] * (0.8 + random.uniform() * 0.19));
    clock.schedule("the resource to be given back", random.integer(2000, 60_000), () => {
      node.resources.useElsewhere(resource, 0);
    });
  },
  /** A pod that exceeds its ephemeral storage limit eventually. */
  addGreedyPod: ({ newPod, want, node }, random) => {
    const pod = withLimit(newPod(random));
    want(pod);
    const { uid } = pod.metadata;
    node.resources.use(uid, "ephemeral-storage", random.uniform() * limitBytes, limitBytes / random.integer(5, 200));
  },
  /** `podwright retry` of one pod. */
  retryPod: ({ node }, random) => {
    const uid = random.pickFrom([...node.desired.keys()]);
    if (uid !== undefined) node.ask((asked) => askRetry(asked, podUid(uid)));
  },
  /** `podwright gc` */
  collectGarbage: ({ node }) => node.ask(askCollection),
  /**
   * For minutes memory is low, whichever pods are evicted; the first ones take long to stop. In some lives the disk is
   * slow.
   */
  shortOfMemory: (stage, random) => {
    const { newPod, want, node, clock, strike, faults } = stage;
    for (const number of [0, 1, 2]) {
      const place = newPod(random, `hungry-${Math.trunc(clock.nowMs)}-${number}`, number);
      const pod = simplePod(place, { terminationGracePeriodSeconds: 40 }, { deaf: true });
      want(pod);
      node.resources.use(pod.metadata.uid, "memory", (3 - number) * smallBytes);
    }
    const isSlow = random.chance(0.6);
    clock.schedule("memory to get short", random.integer(10_000, 40_000), () => {
      if (faults.hasEnded) return;
      strike("memory used up");
      if (isSlow) faults.begin({ diskDelayMaxMs: 2000 }, 120_000);
      node.resources.useElsewhere("memory", 0);
      const others = machineCapacity.memory - node.resources.left("memory");
      node.resources.useElsewhere("memory", machineCapacity.memory - others - littleBytes);
      clock.schedule("memory to be given back", 120_000, () => node.resources.useElsewhere("memory", 0));
    });
  },
  /** Three pods of which one could fill a fifth of the disk, most of it in its writable layer. */
  addLargePods: ({ newPod, want, node, clock }, random) => {
    for (const number of [0, 1, 2]) {
      const pod = simplePod(newPod(random, `large-${Math.trunc(clock.nowMs)}-${number}`, number), {});
      want(pod);
      for (const resource of diskResources) node.resources.use(pod.metadata.uid, resource, largeShare(resource));
    }
  },
  /** One of them writes still more, and the disk fills up: so far that its end makes room enough. */
  fillDisk: ({ node, strike }, random) => {
    const resource = random.pick(diskResources);
    strike(`${resource} used up`);
    const large = [...node.desired.values()].filter(({ metadata }) => metadata.name.startsWith("large-"));
    const last = random.pickFrom(large)?.metadata.uid;
    if (last !== undefined) node.resources.use(last, resource, largeShare(resource) * 1.1);
    const place = node.resources.placeOf("containerfs.available");
    node.resources.useElsewhere(resource, 0, place);
    const left = node.resources.left(resource, place);
    node.resources.useElsewhere(resource, Math.max(0, left - machineCapacity[resource] * 0.02), place);
  },
  emptyDisk: ({ node }) => {
    for (const resource of diskResources) {
      for (const place of ["nodefs", "imagefs"] as const) node.resources.useElsewhere(resource, 0, place);
    }
  },
  /**
   * podwright restarts with a threshold for memory above its capacity. Where that needs no confirmation it
   * changes nothing: all pods would have to go.
   */
  raiseThresholds: ({ node, strike }) => {
    const { evictions } = node;
    if (evictions?.asks !== true) return;
    strike("podwright killed");
    const above = { amount: parseQuantity("9Gi") };
    const raised = { signal: "memory.available", value: above, graceMs: 0, minReclaim: undefined } as const;
    node.kill();
    node.evictions = { ...evictions, thresholds: [raised, ...evictions.thresholds.slice(1)], before: evictions };
    node.start();
  },
  /** And with the one from before, after a while. */
  restoreThresholds: ({ node, strike }) => {
    if (node.evictions?.before === undefined) return;
    strike("podwright killed");
    node.kill();
    node.evictions = node.evictions.before;
    node.start();
  },
  /** `podwright evict --confirm` */
  confirmEvictions: ({ node }) => node.ask(askConfirmation),
  /** Some pods cannot be measured for a while. */
  hideUsage: ({ node, clock }, random) => {
    const hidden = [...node.desired.keys()].filter(() => random.chance(0.3));
    node.resources.hide(hidden);
    clock.schedule("usage to be measured again", random.integer(30_000, 120_000), () => node.resources.show(hidden));
  },
  /** Of three pods that use less than they request, the one with the lowest priority cannot be measured. */
  addUnseenPod: ({ newPod, want, node }, random) => {
    const [unseen] = [0, 1, 2].map((number) => {
      const place = newPod(random, `modest-${number}`, number);
      const { metadata, spec } = simplePod(place, {});
      const requests = { ...spec.containers[0]?.resources?.requests, "ephemeral-storage": "1Gi" };
      const containers = spec.containers.map((container) => ({ ...container, resources: { requests } }));
      want({ metadata, spec: { ...spec, containers, priority: number === 0 ? 0 : 10 } });
      for (const resource of kinds) node.resources.use(metadata.uid, resource, number + 1);
      return metadata.uid;
    });
    if (unseen !== undefined) node.resources.hide([unseen]);
  },
  /** The machine runs short of something by what others than pods use. */
  useUp: ({ node, strike }, random) => {
    const resource = random.pick([...kinds]);
    strike(`${resource} used up`);
    node.resources.useElsewhere(resource, machineCapacity[resource] * 0.995);
  },
  giveBack: ({ node }) => {
    for (const resource of kinds) node.resources.useElsewhere(resource, 0);
    node.resources.showAll();
  },
  /** podwright starts without free memory, while some of its pods cannot be inspected, or their manifests come late. */
  startShort: ({ node, cluster, clock, strike, faults }, random) => {
    strike("podwright killed");
    node.kill();
    strike("memory used up");
    node.resources.useElsewhere("memory", machineCapacity.memory * 0.99);
    clock.schedule("memory to be given back", 50_000, () => node.resources.useElsewhere("memory", 0));
    clock.schedule("podwright to be started again", random.integer(0, 3000), () => {
      const hang = random.pick([0.03, 0.1]);
      faults.begin(cluster === undefined ? { hang } : { manifestDelayMaxMs: 100_000 }, 20_000);
      node.start();
    });
  },
  /** podwright is killed soon after it has evicted a pod, and started again. */
  killWhileEvicting: ({ node, clock, strike }, random) => {
    const [from, afterMs, pauseMs] = [node.entries.length, random.integer(200, 5000), random.integer(0, 2000)];
    const endMs = clock.nowMs + 100_000;
    const look = (): void => {
      if (!node.entries.slice(from).some(({ what }) => what === "PodEvicted")) {
        if (clock.nowMs < endMs) clock.schedule("a pod to be evicted", 500, look);
        return;
      }
      clock.schedule("podwright to be killed", afterMs, () => {
        strike("podwright killed");
        node.kill();
        clock.schedule("podwright to be started again", pauseMs, () => node.start());
      });
    };
    look();
  },
  /** Processes get short, and then a little more than the threshold is left: less than its minimum reclaim, if it has one. */
  hoverAboveThreshold: ({ node, clock, strike }) => {
    const leave = (count: number): void => {
      node.resources.useElsewhere("pids", 0);
      node.resources.useElsewhere("pids", Math.max(0, node.resources.left("pids") - count));
    };
    strike("pids used up");
    leave(900);
    clock.schedule("some processes to end", 40_000, () => leave(1300));
  },
  /** podwright starts while a disk is full, and the runtime does not say where images are for a while. */
  startWithoutLayout: ({ node, clock, strike }, random) => {
    strike("podwright killed");
    node.kill();
    strike("ephemeral-storage used up");
    node.resources.useElsewhere("ephemeral-storage", machineCapacity["ephemeral-storage"] * 0.99);
    node.resources.tellsFileSystems = false;
    clock.schedule("images to be found", random.integer(20_000, 50_000), () => {
      node.resources.tellsFileSystems = true;
    });
    node.start();
  },
  /** The node's disk gets full, and stops answering for longer than a condition lasts. */
  stallDisk: ({ node, clock, strike, faults }, random) => {
    strike("ephemeral-storage used up");
    node.resources.useElsewhere("ephemeral-storage", machineCapacity["ephemeral-storage"] * 0.93);
    clock.schedule("the disk to stop answering", random.integer(3000, 15_000), () => {
      if (faults.hasEnded) return;
      strike("the node's disk stalls");
      node.resources.stalled.add("nodefs");
    });
    clock.schedule("the disk to answer", random.integer(60_000, 160_000), () => {
      node.resources.stalled.clear();
      node.resources.useElsewhere("ephemeral-storage", 0);
    });
  },
  /** The storage of one pod does not answer for a while. */
  stallUsage: ({ node, clock, strike }, random) => {
    const uid = random.pickFrom([...node.desired.keys()]);
    if (uid === undefined) return;
    strike("a pod's storage stalls");
    node.resources.stalledPods.add(uid);
    clock.schedule("a pod's storage to answer", random.integer(20_000, 140_000), () => {
      node.resources.stalledPods.delete(uid);
    });
  },
  /** As soon as a disk is short nobody's storage can be measured for a while; memory gets short, too. */
  hangUsage: ({ node, clock, strike, faults }, random) => {
    const { resources } = node;
    const hang = (): void => {
      if (faults.hasEnded || resources.storageHangs) return;
      strike("storage cannot be measured");
      resources.hangStorage();
      clock.schedule("memory to be used up", random.integer(1000, 5000), () => {
        if (!faults.hasEnded) resources.useElsewhere("memory", machineCapacity.memory * 0.99);
      });
      clock.schedule("storage to be measured", random.integer(30_000, 60_000), () => {
        resources.letStorageAnswer();
        resources.useElsewhere("memory", 0);
      });
    };
    const looking = resources.onLook((seen) => {
      const thresholds = withContainerFs(node.evictions?.thresholds ?? [], resources.fileSystems);
      if (thresholds.some((each) => isOfDisk(each.signal) && isMet(each, seen, false))) hang();
    });
    clock.schedule("no disk to get short any more", 60_000, () => looking[Symbol.dispose]());
  },
  /** podwright starts while the disk is full, and the runtime does not say where images are for minutes. */
  loseLayout: ({ node, clock, strike }) => {
    strike("podwright killed");
    node.kill();
    strike("ephemeral-storage used up");
    const left = node.resources.left("ephemeral-storage");
    const capacity = machineCapacity["ephemeral-storage"];
    node.resources.useElsewhere("ephemeral-storage", Math.max(0, left - capacity * 0.02));
    node.resources.tellsFileSystems = false;
    clock.schedule("images to be found", 200_000, () => {
      node.resources.tellsFileSystems = true;
      node.resources.useElsewhere("ephemeral-storage", 0);
    });
    node.start();
  },
} satisfies Record<string, Act>;

export type PressureStepKind = keyof typeof pressureActs;

/** Relative frequency of each kind. */
export const pressureWeights: Readonly<Record<PressureStepKind, number>> = {
  shareResource: 5,
  leakResource: 5,
  starveNode: 2,
  addGreedyPod: 2,
  retryPod: 2,
  collectGarbage: 2,
  // Drawn separately, so that other lives stay the same.
  shortOfMemory: 0,
  startShort: 0,
  addLargePods: 0,
  fillDisk: 0,
  emptyDisk: 0,
  raiseThresholds: 0,
  restoreThresholds: 0,
  confirmEvictions: 0,
  hideUsage: 0,
  addUnseenPod: 0,
  useUp: 0,
  giveBack: 0,
  killWhileEvicting: 0,
  startWithoutLayout: 0,
  hoverAboveThreshold: 0,
  stallDisk: 0,
  stallUsage: 0,
  hangUsage: 0,
  loseLayout: 0,
};

export const hardPressureKinds = ["shortOfMemory", "startShort"] as const satisfies readonly PressureStepKind[];

function largeShare(resource: StarvedResource): number {
  return machineCapacity[resource] * 0.22;
}

function withLimit(pod: Pod): Pod {
  const containers = pod.spec.containers.map((container, index) => {
    if (index > 0) return container;
    const limits = { ...container.resources?.limits, "ephemeral-storage": String(limitBytes) };
    return { ...container, resources: { ...container.resources, limits } };
  });
  return { ...pod, spec: { ...pod.spec, containers } };
}
