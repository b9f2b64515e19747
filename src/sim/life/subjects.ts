import { SimRandom } from "../random.ts";
import type { NodeManner } from "./node-config.ts";
import type { NodeStepKind } from "./steps.ts";

/** The subject of a life, which makes rare combinations frequent. */
export interface Subject extends NodeManner {
  readonly name: string;
  /** Kinds of steps in each life of the subject, with their relative frequency. */
  readonly weights: Readonly<Partial<Record<NodeStepKind, number>>>;
  /** Features of every pod ({@link podFeatures}), or properties of all its containers. */
  readonly always: ReadonlySet<string>;
  /** No faults except those of steps. */
  readonly isQuiet?: boolean;
  /** The longest pause between two steps; drawn by default. */
  readonly pauseMs?: number;
}

const resizes: Subject = {
  name: "resizes",
  weights: { resizePod: 60, killContainer: 6, removePod: 3, killNode: 6, slowCalls: 2 },
  always: new Set(["resources", "lasting"]),
  isTight: true,
};

/** A node with few resources, on which critical pods are added repeatedly. */
const preemption: Subject = {
  name: "resizes and critical pods",
  weights: { ...resizes.weights, addPod: 60, removePod: 10 },
  always: new Set([...resizes.always, "priority"]),
  isTight: true,
};

const imageSubject = "images that go";
const subjects: readonly Subject[] = [
  resizes,
  preemption,
  {
    name: "changes",
    weights: { changeImage: 30, failingUpdate: 20, failingStops: 10, changeObjects: 3, slowCalls: 3 },
    always: new Set(["volumes", "lasting"]),
  },
  {
    name: "changes on a slow disk",
    weights: { addPod: 30, changeAll: 80, slowDisk: 12, killContainer: 10 },
    always: new Set(["lasting", "always restarted", "volumes"]),
    isQuiet: true,
    isSeldomSynced: true,
  },
  {
    name: "orphans and returning pods",
    weights: { leaveOrphan: 16, returnPod: 30, replacePod: 6, killNodeAtStep: 3 },
    always: new Set(["lasting"]),
  },
  {
    name: "graces",
    weights: {
      removePodSoon: 20,
      removeEndingPod: 20,
      removeStartingPod: 20,
      killSandbox: 6,
      failingCalls: 4,
      failingStops: 10,
    },
    always: new Set(["hooks", "init", "deadline", "lasting"]),
  },
  {
    name: "a slow runtime",
    weights: { addPod: 6, slowCalls: 30, killContainer: 10, changeLabels: 5, changeImage: 5 },
    always: new Set(["crashing", "many"]),
    isQuiet: true,
  },
  {
    name: "clocks and crashes",
    weights: { jumpClock: 30, killContainer: 10, removeContainer: 4, killNode: 2, slowCalls: 4 },
    always: new Set(["crashing", "rules"]),
  },
  {
    name: "long runs",
    weights: { killContainer: 40, addPod: 10, killNode: 4, changeLabels: 4 },
    always: new Set(["enduring", "always restarted"]),
    isQuiet: true,
    pauseMs: 200_000,
  },
  {
    name: "a crowded node",
    weights: { addPod: 40, replacePod: 10, removePod: 10, killNode: 12, killNodeAtStep: 4 },
    always: new Set(["hostPorts", "probes", "lasting"]),
    isTight: true,
  },
  {
    name: "probes and a full disk",
    weights: { addPod: 30, diskFullAtStart: 40, killNode: 20 },
    always: new Set(["probes", "health", "steady", "always restarted"]),
    isQuiet: true,
    pauseMs: 150_000,
  },
  {
    name: "deadlines and restarts",
    weights: { addPod: 40, killNode: 30, killContainer: 4 },
    always: new Set(["deadline", "steady"]),
    isQuiet: true,
    pauseMs: 60_000,
  },
  {
    name: "sidecars that end",
    weights: { addPod: 20, killContainer: 20 },
    always: new Set(["init", "crashing", "always restarted"]),
    isQuiet: true,
    pauseMs: 60_000,
  },
  {
    name: "users of their own",
    weights: { addPod: 40, replaceAll: 60 },
    always: new Set(["hostUsers", "steady"]),
    isQuiet: true,
    pauseMs: 30_000,
    hasFewIds: true,
  },
  {
    name: imageSubject,
    weights: { addPod: 30, removePod: 20, changeImage: 30, fillImages: 40, killNode: 4, registry: 4 },
    always: new Set(["lasting"]),
    isQuiet: true,
    pauseMs: 120_000,
  },
  {
    name: "sandboxes",
    weights: { addPod: 20, killSandbox: 25, noAddress: 25, failingCalls: 6 },
    always: new Set(["missing"]),
  },
];

/** Whether images of a seed's life are collected most of the time. */
export function collectsImages(seed: number): boolean {
  return drawSubject(seed)?.name === imageSubject;
}

/** Only a node in a cluster has static pods with mirror pods. */
const staticPods: Subject = {
  name: "static pods that end",
  weights: { addPod: 20, killSandbox: 20, killNode: 14, lateManifests: 10 },
  always: new Set(["static", "missing", "seldom restarted"]),
};
const clusterSubjects: readonly Subject[] = [...subjects, staticPods, staticPods, staticPods];

/** The subject of a seed's life; undefined: none. */
export function drawSubject(seed: number): Subject | undefined {
  const random = new SimRandom(seed ^ 0x5b_7ec7);
  return random.chance(0.7) ? random.pickFrom(isInCluster(seed) ? clusterSubjects : subjects) : undefined;
}

/** Every tenth life has a cluster, and so has each life with drivers. */
export function isInCluster(seed: number): boolean {
  return seed % 10 === 0 || hasDrivers(seed);
}

/** Whether a seed's life has CSI drivers and claims. */
export function hasDrivers(seed: number): boolean {
  return seed % 15 === 3;
}

/** Whether volumes of a seed's life grow, are measured, and belong to groups. */
export function growsVolumes(seed: number): boolean {
  return hasDrivers(seed) && seed % 2 === 0;
}

/** Whether a seed's life has block volumes, disks of the node, and volumes for one pod at a time. */
export function hasDevices(seed: number): boolean {
  return hasDrivers(seed) && Math.floor(seed / 15) % 3 === 1;
}

/** Whether the node of a seed's life has SELinux, and a driver that mounts volumes for one pod with labels. */
export function hasSELinux(seed: number): boolean {
  return hasDevices(seed) && seed % 2 === 1;
}

/** Whether the drivers of a seed's life work on calls for one volume side by side. */
export function hasUnlockedDrivers(seed: number): boolean {
  return hasDrivers(seed) && Math.floor(seed / 15) % 2 === 0;
}

/** Whether CSIDriver objects of a seed's life come after pods that need them. */
export function hasLateDriverObjects(seed: number): boolean {
  return hasDrivers(seed) && Math.floor(seed / 15) % 3 === 2;
}

/** Whether pods of a seed's life have image volumes. */
export function hasImageVolumes(seed: number): boolean {
  return seed % 5 === 2;
}

/** Whether the machine of a seed's life shuts down, and its kubelet has the rooms for the machine. */
export function hasMachineRooms(seed: number): boolean {
  return seed % 12 === 5 && !isInCluster(seed);
}
