import { isRecorded, podsDirectory } from "./recorded.ts";
import type { Pod } from "../../api/pod.ts";
import type { SimRandom } from "../random.ts";
import { clusterActs } from "./cluster-steps.ts";
import { deviceActs } from "./device-steps.ts";
import { driverActs } from "./driver-steps.ts";
import { imageActs } from "./image-steps.ts";
import { killSandbox } from "./kill-sandbox.ts";
import { machineActs } from "./machine-steps.ts";
import { pressureActs } from "./pressure-steps.ts";
import { quotaActs } from "./quota-steps.ts";
import { resized } from "./pod-resources.ts";
import type { Act, Stage } from "./stage.ts";

/** Actions on pods. */
const workload = {
  addPod: ({ newPod, want }, random) => want(newPod(random)),
  removePod: (stage, random) => onPod(stage, random, ({ metadata }) => stage.unwant(metadata.uid)),
  /** Like `podwright stop --grace`. */
  removePodSoon: (stage, random) =>
    onPod(stage, random, ({ metadata }) => stage.unwant(metadata.uid, random.integer(1, 5))),
  /** While it is being stopped for another reason, such as a deadline or its own end. */
  removeEndingPod: (stage, random) =>
    onPod(stage, random, ({ metadata: { uid } }) => {
      const graceSeconds = random.pick([undefined, random.integer(1, 5)]);
      const look = (left: number): void => {
        if (stage.faults.hasEnded || !stage.node.desired.has(uid)) return;
        if (stage.node.isEnding(uid)) stage.unwant(uid, graceSeconds);
        else if (left > 0) stage.clock.schedule("a pod to come to its end", 500, () => look(left - 1));
      };
      look(400);
    }),
  /** As soon as the runtime has created something of it: a container, or its sandbox; or a new pod, before that. */
  removeStartingPod: (stage, random) => {
    if (random.chance(0.5)) return removeSoonAfter(stage, random);
    onPod(stage, random, ({ metadata: { uid } }) => {
      const made = random.pick(["created", "created", "sandboxStarted"]);
      const afterMs = random.pick([0, random.integer(0, 300)]);
      const watch = stage.world.onChange(({ type, podUid }) => {
        if (podUid !== uid || type !== made) return;
        watch[Symbol.dispose]();
        stage.clock.schedule("a pod to go while it starts", afterMs, () => {
          if (stage.node.desired.has(uid) && !stage.faults.hasEnded) stage.unwant(uid);
        });
      });
    });
  },
  /** Another pod of the same name is added at once, as when a manifest changes. */
  replacePod: (stage, random) => onPod(stage, random, (pod) => replace(stage, random, pod)),
  /** Every pod is replaced, as in a rollout of all workloads. */
  replaceAll: (stage, random) => {
    for (const [number, pod] of [...stage.node.desired.values()].entries()) replace(stage, random, pod, number);
  },
  /** Removed, and desired again under the same UID before it is gone, or long after. */
  returnPod: (stage, random) =>
    onPod(stage, random, (pod) => {
      stage.unwant(pod.metadata.uid);
      const again = (): void => {
        if (!stage.node.desired.has(pod.metadata.uid)) stage.want(pod);
      };
      stage.clock.schedule("a pod to be wanted again", random.pick([0, random.integer(0, 60_000)]), again);
    }),
  changeImage: (stage, random) => onPod(stage, random, (pod) => changeImageOf(stage, random, pod)),
  resizePod: (stage, random) => onPod(stage, random, (pod) => stage.change(resized(pod, random))),
  changeLabels: (stage, random) =>
    onPod(stage, random, (pod) => {
      const labels = { version: String(random.integer(0, 1000)) };
      stage.change({ ...pod, metadata: { ...pod.metadata, labels } });
    }),
  /** Changes all volume contents and then, during the update, each pod's image. */
  changeAll: (stage, random) => {
    stage.node.changeObjects("settings");
    for (const uid of stage.node.desired.keys()) {
      stage.clock.schedule("a pod to be changed as well", random.integer(0, 3000), () => {
        const pod = stage.node.desired.get(uid);
        if (pod !== undefined) changeImageOf(stage, random, pod);
      });
    }
  },
  changeObjects: ({ node }) => node.changeObjects("settings"),
  lateObjects: ({ node }) => node.changeObjects("late"),
  /** Objects change while the disk is full. */
  failingUpdate: ({ faults, node }, random) => {
    faults.begin({ diskFull: true }, random.integer(1000, 20_000));
    node.changeObjects("settings");
  },
} satisfies Record<string, Act>;

/** Momentary faults of podwright, the runtime and the containers. */
const blows = {
  killNode: (stage, random) => {
    stage.strike("podwright killed");
    stage.node.kill();
    if (random.chance(0.5)) nameInAnotherOrder(stage);
    stage.clock.schedule("podwright to be started again", random.integer(0, 5000), () => stage.node.start());
  },
  killNodeAtStep: ({ node }, random) => {
    node.killAfter(random.pick([random.integer(1, 20), random.integer(1, 400)]), random.integer(0, 5000));
  },
  /** A pod is removed or replaced while podwright is down; it is found on a faulty runtime. */
  leaveOrphan: (stage, random) => {
    stage.strike("podwright killed");
    stage.node.kill();
    const afterMs = random.integer(100, 3000);
    const [failBefore, hang] = [random.pick([0, 0, 0.5]), random.pick([0, 0, 0.3])];
    const lookSlowness = random.pick([1, 100, 100]);
    onPod(stage, random, ({ metadata }) => {
      stage.unwant(metadata.uid);
      if (random.chance(0.5)) stage.want(stage.newPod(random, metadata.name));
    });
    stage.clock.schedule("podwright to be started again", afterMs, () => {
      stage.faults.begin({ failBefore, hang, lookSlowness }, 20_000);
      stage.node.start();
    });
  },
  /** podwright is restarted, and its manifests are read after everything else. */
  lateManifests: (stage, random) => {
    stage.strike("podwright killed");
    stage.node.kill();
    const manifestDelayMaxMs = random.pick([2000, 20_000, 120_000]);
    const forMs = random.integer(1000, 180_000);
    stage.clock.schedule("podwright to be started again", random.integer(0, 5000), () => {
      stage.faults.begin({ manifestDelayMaxMs }, forMs);
      stage.node.start();
    });
  },
  restartRuntime: (stage, random) => {
    const { world, clock } = stage;
    if (world.down) return;
    stage.strike("runtime restarted");
    world.goDown();
    const losing = random.chance(0.2) ? 0.3 : 0;
    const up = (): void =>
      world.comeUp(({ config }) => {
        if (!random.chance(losing)) return false;
        stage.strike("container unknown to the runtime");
        stage.tamper(config.labels["io.kubernetes.pod.uid"] ?? "");
        return true;
      });
    clock.schedule("the runtime to be started again", random.integer(100, 30_000), up);
  },
  cutEvents: (stage) => {
    stage.strike("event stream cut");
    stage.world.cutStreams();
  },
  killContainer: (stage, random) => {
    const running = [...stage.world.containers.values()].filter(({ state }) => state === "running");
    const container = running[random.integer(0, running.length - 1)];
    if (container === undefined) return;
    const oom = random.chance(0.5);
    stage.strike(oom ? "container killed for memory" : "container killed");
    if (oom) {
      const cgroup = `${stage.world.sandboxes.get(container.sandboxId)?.config.linux?.cgroupParent}/${container.id}`;
      stage.node.kernelLog.killed({ pid: stage.world.containers.size, name: "app", cgroup, machine: false });
    }
    stage.world.exit(container, oom ? 137 : random.pick([0, 1, 3, 137]), oom ? "OOMKilled" : "Error");
  },
  killSandbox,
  /** A container, running or dead, is removed by others. */
  removeContainer: (stage, random) => {
    const containers = [...stage.world.containers.values()];
    const container = containers[random.integer(0, containers.length - 1)];
    if (container === undefined) return;
    stage.strike("container removed by somebody else");
    stage.world.removeContainer(container.id);
    stage.tamper(container.config.labels["io.kubernetes.pod.uid"] ?? "");
  },
  jumpClock: (stage, random) => {
    stage.strike("wall clock jumps");
    stage.clock.jumpWall(random.integer(-3_600_000, 3_600_000));
  },
} satisfies Record<string, Act>;

/** Lasting faults. */
const windows = {
  failingCalls: ({ faults }, random) => {
    const most = random.pick([0.05, 0.2, 0.9]);
    const [failBefore, failAfter] = [random.uniform() * most, random.uniform() * most];
    faults.begin({ failBefore, failAfter }, random.integer(1000, 60_000));
  },
  /** A pod that is removed meanwhile needs more than one stop. */
  failingStops: ({ faults }, random) =>
    faults.begin({ stopFails: random.pick([0.5, 0.9, 1]) }, random.integer(1000, 60_000)),
  hangingCalls: ({ faults }, random) =>
    faults.begin({ hang: random.pick([0.01, 0.1, 1]) }, random.integer(1000, 40_000)),
  slowCalls: ({ faults }, random) => {
    const slowness = random.integer(5, 100);
    faults.begin(random.chance(0.5) ? { slowness } : { lookSlowness: slowness }, random.integer(1000, 60_000));
  },
  lostEvents: ({ faults }, random) => {
    const [eventLost, eventTwice] = [random.uniform(), random.uniform() * 0.5];
    faults.begin(
      { eventLost, eventTwice, eventDelayMaxMs: random.integer(100, 20_000) },
      random.integer(5000, 120_000),
    );
  },
  registry: ({ faults }, random) => {
    const pullFails = random.pick([0, 0.5, 1]);
    faults.begin({ pullFails, pullSlowness: random.pick([1, 10, 20]) }, random.integer(5000, 120_000));
  },
  /** Other data and unused images fill the image file system, nearly or completely; image removals may fail. */
  fillImages: ({ clock, faults, world }, random) => {
    const [removalFails, removalLies] = [random.pick([0, 0, 0.5]), random.pick([0, 0, 0.5])];
    const forMs = random.integer(60_000, 900_000);
    world.images.fill(random.pick([0.5, 0.75, 0.84, 0.95]), clock.nowMs);
    for (const number of [1, 2, 3]) if (random.chance(0.3)) world.images.add(`stray:${number}`);
    faults.begin({ removalFails, removalLies }, forMs);
    clock.schedule("room for images", forMs, () => world.images.fill(0, clock.nowMs));
  },
  noAddress: ({ faults }, random) => faults.begin({ noAddress: 0.7 }, random.integer(1000, 30_000)),
  diskFull: ({ faults }, random) => faults.begin({ diskFull: true }, random.integer(1000, 60_000)),
  /** From the next start of a container, which has to be recorded. */
  diskFullAtStart: ({ faults, world }, random) => {
    const forMs = random.integer(5000, 40_000);
    const watch = world.onChange(({ type }) => {
      if (type !== "started") return;
      watch[Symbol.dispose]();
      if (!faults.hasEnded) faults.begin({ diskFull: true }, forMs);
    });
  },
  diskErrors: ({ faults }, random) =>
    faults.begin({ diskErrors: random.pick([0.01, 0.2]) }, random.integer(1000, 30_000)),
  slowDisk: ({ faults }, random) =>
    faults.begin({ diskDelayMaxMs: random.integer(10, 2000) }, random.integer(1000, 60_000)),
  machineErrors: ({ faults }, random) => faults.begin({ machineErrors: 0.3 }, random.integer(1000, 30_000)),
  worstMoments: ({ faults }, random) => faults.begin({ worstMoments: 0.4 }, random.integer(5000, 120_000)),
} satisfies Record<string, Act>;

/** Rare situations: remains of an earlier Go kubelet. */
const rareActs = {
  /** A driver's volume in a pod's directory. The driver removes it some time after the pod is gone. */
  foreignVolume: (stage, random) =>
    onPod(stage, random, ({ metadata: { uid } }) => {
      const { node, clock } = stage;
      // Without this, and with such a UID, it is no pod's directory.
      if (!isRecorded(node.files, uid)) return;
      const volume = node.foreignVolumes.mount(`${podsDirectory}/${uid}`);
      const graceMs = random.integer(0, 300_000);
      const look = (): void => {
        if (node.desired.has(uid)) clock.schedule("a pod with a driver's volume to go", 5000, look);
        else clock.schedule("a driver to take its volume away", graceMs, () => node.foreignVolumes.unmount(volume));
      };
      look();
    }),
} satisfies Record<string, Act>;

const nodeActs = { ...workload, ...blows, ...windows };
const acts = {
  ...nodeActs,
  ...clusterActs,
  ...pressureActs,
  ...machineActs,
  ...driverActs,
  ...deviceActs,
  ...imageActs,
  ...quotaActs,
  ...rareActs,
};

/** Steps for every node. */
export type NodeStepKind = keyof typeof nodeActs;
export type RareStepKind = keyof typeof rareActs;
export type StepKind = keyof typeof acts;

export const nodeStepKinds = Object.keys(nodeActs) as NodeStepKind[];
export const rareStepKinds = Object.keys(rareActs) as RareStepKind[];
export const stepKinds = Object.keys(acts) as StepKind[];

/** Relative frequency of each kind. */
export const weights: Readonly<Record<NodeStepKind, number>> = {
  addPod: 20,
  removePod: 6,
  removePodSoon: 2,
  removeEndingPod: 2,
  removeStartingPod: 2,
  replacePod: 6,
  replaceAll: 0.2,
  returnPod: 3,
  changeImage: 4,
  resizePod: 4,
  changeLabels: 1,
  changeAll: 1,
  changeObjects: 4,
  lateObjects: 1,
  failingUpdate: 2,
  killNode: 5,
  killNodeAtStep: 6,
  leaveOrphan: 0.1,
  lateManifests: 2,
  restartRuntime: 3,
  cutEvents: 1,
  killContainer: 4,
  killSandbox: 2,
  removeContainer: 1,
  jumpClock: 2,
  failingCalls: 4,
  failingStops: 1,
  hangingCalls: 2,
  slowCalls: 2,
  lostEvents: 2,
  registry: 2,
  fillImages: 2,
  noAddress: 1,
  diskFull: 2,
  diskFullAtStart: 1,
  diskErrors: 1,
  slowDisk: 1,
  machineErrors: 1,
  worstMoments: 3,
};

export function act(kind: StepKind, stage: Stage, random: SimRandom): void {
  const handler: Act = acts[kind];
  handler(stage, random);
}

function changeImageOf(stage: Stage, random: SimRandom, pod: Pod): void {
  const chosen = random.integer(0, pod.spec.containers.length - 1);
  // Stopping a container that may never restart ends its pod, and determines its phase.
  const policy = pod.spec.containers[chosen]?.restartPolicy ?? pod.spec.restartPolicy;
  if (policy === "Never") return;
  const image = random.pick(["busybox", "busybox:2", "pulled:2", "missing:2"]);
  const containers = pod.spec.containers.map((container, index) =>
    index === chosen ? { ...container, image } : container,
  );
  stage.change({ ...pod, spec: { ...pod.spec, containers } });
}

/** Sources deliver desired pods in any order. */
function nameInAnotherOrder({ node, cluster }: Stage): void {
  if (cluster !== undefined) return;
  const pods = [...node.desired].toReversed();
  node.desired.clear();
  for (const [uid, pod] of pods) node.desired.set(uid, pod);
}

/** A pod that is removed while its sandbox or its first container is being created. */
function removeSoonAfter(stage: Stage, random: SimRandom): void {
  const pod = stage.newPod(random);
  stage.want(pod);
  stage.clock.schedule("a pod to go while it starts", random.integer(0, 600), () => {
    if (stage.node.desired.has(pod.metadata.uid)) stage.unwant(pod.metadata.uid);
  });
}

function replace(stage: Stage, random: SimRandom, { metadata }: Pod, number?: number): void {
  stage.unwant(metadata.uid);
  stage.want(stage.newPod(random, metadata.name, number));
}

function onPod({ node }: Stage, random: SimRandom, then: (pod: Pod) => void): void {
  const pods = [...node.desired.values()];
  const pod = pods[random.integer(0, pods.length - 1)];
  if (pod !== undefined) then(pod);
}
