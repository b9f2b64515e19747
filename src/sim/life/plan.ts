import { SimRandom } from "../random.ts";
import { type ClusterStepKind, clusterWeights } from "./cluster-steps.ts";
import { type DeviceStepKind, deviceWeights } from "./device-steps.ts";
import { driverWeights } from "./driver-steps.ts";
import { type MachineStepKind, machineWeights } from "./machine-steps.ts";
import { hardPressureKinds, isUnderPressure, type PressureStepKind, pressureWeights } from "./pressure-steps.ts";
import { hasQuotas, type QuotaStepKind, quotaWeights } from "./quota-steps.ts";
import { type NodeStepKind, nodeStepKinds, rareStepKinds, type StepKind, weights } from "./steps.ts";
import {
  collectsImages,
  drawSubject,
  growsVolumes,
  hasDevices,
  hasDrivers,
  hasLateDriverObjects,
  hasMachineRooms,
  hasUnlockedDrivers,
  isInCluster,
  type Subject,
} from "./subjects.ts";

/** An action on the node, its pods or its machine; the details follow from the step's own seed. */
export interface Step {
  readonly index: number;
  /** Simulated time. */
  readonly atMs: number;
  readonly kind: StepKind;
  readonly seed: number;
}

/** The UID of a pod that a step adds; several pods of one step are numbered. */
export function stepUid(index: number, number: number): string {
  return number === 0 ? `uid-${index}` : `uid-${index}x${number}`;
}

/**
 * The steps of a seed's life, by time. Steps are independent, so that leaving one out does not change the others. Each
 * life has only some kinds of steps, because rare problems do not show among too many faults.
 */
export function drawPlan(seed: number): Step[] {
  const steps = drawNodeSteps(new SimRandom(seed), drawSubject(seed));
  const untilMs = steps.at(-1)?.atMs ?? 0;
  // Each kind of life has draws of its own, so that others stay the same.
  const add = (draw: (random: SimRandom, firstIndex: number, untilMs: number) => Step[], random: SimRandom): void => {
    steps.push(...draw(random, steps.length, untilMs));
  };
  if (isInCluster(seed)) add(drawClusterSteps, new SimRandom(seed ^ 0x00c1_0575));
  if (isUnderPressure(seed)) add(drawPressureSteps, SimRandom.named(seed, "pressure"));
  if (hasMachineRooms(seed)) add(drawMachineSteps, SimRandom.named(seed, "machine"));
  if (hasDrivers(seed)) add(drawDriverSteps, SimRandom.named(seed, "drivers"));
  if (isUnderPressure(seed)) add(drawHardPressure, SimRandom.named(seed, "hard pressure"));
  if (growsVolumes(seed)) add(drawGrowth, SimRandom.named(seed, "growth"));
  if (hasUnlockedDrivers(seed)) add(drawShortPods, SimRandom.named(seed, "pods that go during calls"));
  if (hasLateDriverObjects(seed)) add(drawLateObjects, SimRandom.named(seed, "late driver objects"));
  if (hasDevices(seed)) add(drawDeviceSteps, SimRandom.named(seed, "devices"));
  if (collectsImages(seed)) add(drawImageSteps, SimRandom.named(seed, "images"));
  if (hasQuotas(seed)) add(drawQuotaSteps, SimRandom.named(seed, "quotas"));
  if (isUnderPressure(seed)) add(drawFullDisk, SimRandom.named(seed, "full disk"));
  if (isUnderPressure(seed)) add(drawHiddenUsage, SimRandom.named(seed, "hidden usage"));
  if (isUnderPressure(seed)) add(drawHardStarts, SimRandom.named(seed, "hard starts"));
  if (isUnderPressure(seed)) add(drawStalls, SimRandom.named(seed, "stalls"));
  if (isRare(seed)) add(drawRareSteps, SimRandom.named(seed, "rare"));
  return steps.toSorted((a, b) => a.atMs - b.atMs);
}

/** Rare acts last, so each is the only one in its life. */
function isRare(seed: number): boolean {
  return seed % 16 === 7;
}

function drawRareSteps(random: SimRandom, index: number, untilMs: number): Step[] {
  const kind = random.pickFrom(rareStepKinds);
  if (kind === undefined) return [];
  return [{ index, atMs: random.integer(0, untilMs), kind, seed: Math.floor(random.uniform() * 0x1_0000_0000) }];
}

function drawNodeSteps(random: SimRandom, subject: Subject | undefined): Step[] {
  const likely = subject === undefined ? random.pick([0.3, 0.6, 1]) : random.pick([0, 0.2]);
  const kinds = nodeStepKinds.filter((kind) => {
    return kind === "addPod" || subject?.weights[kind] !== undefined || random.chance(likely);
  });
  const drawKind = drawer<NodeStepKind>(kinds, { ...weights, ...subject?.weights }, random);
  // Some lives are hectic, some are long.
  const drawnMs = random.pick([2000, 20_000, 20_000, 120_000]);
  const pauseMs = subject?.pauseMs ?? drawnMs;
  let atMs = 0;
  return Array.from({ length: random.integer(4, 30) }, (_, index) => {
    atMs += random.integer(0, pauseMs);
    const kind = index === 0 ? "addPod" : drawKind();
    return { index, atMs, kind, seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/** Additional steps in a cluster. */
function drawClusterSteps(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const likely = random.pick([0.3, 1]);
  const all = Object.keys(clusterWeights) as ClusterStepKind[];
  const kinds = all.filter((kind) => kind === "apiDown" || random.chance(likely));
  const drawKind = drawer<ClusterStepKind>(kinds, clusterWeights, random);
  return Array.from({ length: random.integer(2, 15) }, (_, index) => {
    const atMs = random.integer(0, untilMs + 60_000);
    return { index: firstIndex + index, atMs, kind: drawKind(), seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/** Additional actions on the machine's resources. */
function drawPressureSteps(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const drawKind = drawer(Object.keys(pressureWeights) as PressureStepKind[], pressureWeights, random);
  return Array.from({ length: random.integer(2, 12) }, (_, index) => {
    const atMs = random.integer(0, untilMs + 60_000);
    return { index: firstIndex + index, atMs, kind: drawKind(), seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/** Pressure that lasts for minutes. */
function drawHardPressure(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  if (random.chance(0.5)) return [];
  return Array.from({ length: random.integer(1, 2) }, (_, index) => {
    const atMs = random.integer(0, untilMs);
    const kind = random.pick(hardPressureKinds);
    return { index: firstIndex + index, atMs, kind, seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/** Additional actions on volumes with project quotas. */
function drawQuotaSteps(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const drawKind = drawer(Object.keys(quotaWeights) as QuotaStepKind[], quotaWeights, random);
  return Array.from({ length: random.integer(2, 8) }, (_, index) => {
    const atMs = random.integer(0, untilMs + 60_000);
    const kind = index === 0 ? "addFillingPod" : drawKind();
    return { index: firstIndex + index, atMs, kind, seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/** The disk fills up once, long after all else, so that no fault excuses an eviction too many. */
function drawFullDisk(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  if (random.chance(0.3)) return [];
  const startMs = untilMs + random.integer(200_000, 300_000);
  const steps: readonly (readonly [kind: StepKind, afterMs: number])[] = [
    ["addLargePods", 0],
    ["fillDisk", random.integer(20_000, 40_000)],
    ["emptyDisk", 110_000],
  ];
  const drawn = steps.map(([kind, afterMs], index) => {
    const seed = Math.floor(random.uniform() * 0x1_0000_0000);
    return { index: firstIndex + index, atMs: startMs + afterMs, kind, seed };
  });
  return [...drawn, ...drawRaisedThresholds(random, firstIndex + drawn.length, startMs)];
}

/**
 * Meanwhile memory is below a threshold that was raised long before, so that its evictions wait for a confirmation. If
 * that comes, then after the disk has had its turn.
 */
function drawRaisedThresholds(random: SimRandom, firstIndex: number, startMs: number): Step[] {
  if (random.chance(0.3)) return [];
  const steps: readonly (readonly [kind: StepKind, atMs: number])[] = [
    ["raiseThresholds", startMs - 180_000],
    ...(random.chance(0.4) ? [["confirmEvictions", startMs + 100_000] as const] : []),
    ["restoreThresholds", startMs + 115_000],
  ];
  return steps.map(([kind, atMs], index) => ({ index: firstIndex + index, atMs, kind, seed: 0 }));
}

/** Pods whose usage is unknown, while the node may run short of something. */
function drawHiddenUsage(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const kinds = Array.from({ length: random.integer(0, 3) }, () => "hideUsage" as const);
  const unseenMs = untilMs + random.integer(10_000, 40_000);
  const unseen: readonly (readonly [kind: StepKind, atMs: number])[] = [
    ["addUnseenPod", unseenMs],
    ["useUp", unseenMs + 45_000],
    ["giveBack", unseenMs + 110_000],
  ];
  const hidden = kinds.map((kind) => [kind, random.integer(0, untilMs)] as const);
  const steps = [...hidden, ...(random.chance(0.5) ? unseen : [])];
  return steps.map(([kind, atMs], index) => {
    return { index: firstIndex + index, atMs, kind, seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/**
 * Long after all else podwright starts while a pod is being evicted, or without knowing where images are; or a threshold
 * is hardly met.
 */
function drawHardStarts(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const startMs = untilMs + 600_000;
  const choices: readonly (readonly [likely: number, kinds: readonly StepKind[], forMs: number])[] = [
    [0.5, ["killWhileEvicting", "shortOfMemory"], 140_000],
    [0.3, ["startWithoutLayout"], 80_000],
    [0.3, ["hoverAboveThreshold"], 190_000],
  ];
  // A life ends soon after its last step.
  const steps = choices.flatMap(([likely, kinds, forMs], index): (readonly [kind: StepKind, afterMs: number])[] => {
    const atMs = index * 200_000;
    return random.chance(likely) ? [...kinds.map((kind) => [kind, atMs] as const), ["giveBack", atMs + forMs]] : [];
  });
  return steps.map(([kind, afterMs], index) => {
    const seed = Math.floor(random.uniform() * 0x1_0000_0000);
    return { index: firstIndex + index, atMs: startMs + afterMs, kind, seed };
  });
}

/** After the hard starts measurements stall: of a disk, of a pod, and of where images are. */
function drawStalls(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const startMs = untilMs + 1_300_000;
  const choices: readonly (readonly [
    likely: number,
    steps: readonly (readonly [kind: StepKind, afterMs: number])[],
  ])[] = [
    [
      0.5,
      [
        ["stallDisk", 0],
        ["stallUsage", 0],
      ],
    ],
    [
      0.5,
      [
        ["addLargePods", 0],
        ["stallUsage", 30_000],
        ["fillDisk", 40_000],
        ["emptyDisk", 130_000],
      ],
    ],
    [
      0.5,
      [
        ["addLargePods", 0],
        ["loseLayout", 40_000],
        ["giveBack", 250_000],
      ],
    ],
    [
      0.5,
      [
        ["addLargePods", 0],
        ["hangUsage", 30_000],
        ["fillDisk", 40_000],
        ["emptyDisk", 130_000],
      ],
    ],
  ];
  const steps = choices.flatMap(([likely, each], index) =>
    random.chance(likely) ? each.map(([kind, afterMs]) => [kind, startMs + index * 300_000 + afterMs] as const) : [],
  );
  return steps.map(([kind, atMs], index) => {
    return { index: firstIndex + index, atMs, kind, seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/** Additional actions on the machine itself. */
function drawMachineSteps(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const drawKind = drawer(Object.keys(machineWeights) as MachineStepKind[], machineWeights, random);
  return Array.from({ length: random.integer(2, 8) }, (_, index) => {
    const atMs = random.integer(0, untilMs + 120_000);
    return { index: firstIndex + index, atMs, kind: drawKind(), seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/** Additional actions on drivers and claims; few kinds in each life. */
function drawDriverSteps(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const all = Object.keys(driverWeights) as (keyof typeof driverWeights)[];
  const likely = random.pick([0.3, 1]);
  const kinds = all.filter((kind) => kind === "bindClaims" || random.chance(likely));
  const drawKind = drawer(kinds, driverWeights, random);
  return Array.from({ length: random.integer(2, 15) }, (_, index) => {
    const atMs = random.integer(0, untilMs + 60_000);
    return { index: firstIndex + index, atMs, kind: drawKind(), seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/** Additional actions on the node's disks and on exclusive volumes. */
function drawDeviceSteps(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const drawKind = drawer(Object.keys(deviceWeights) as DeviceStepKind[], deviceWeights, random);
  return Array.from({ length: random.integer(1, 6) }, (_, index) => {
    const atMs = random.integer(0, untilMs + 60_000);
    return { index: firstIndex + index, atMs, kind: drawKind(), seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}

/** Volumes become larger, some of them several times. */
function drawGrowth(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  return drawAnyTime("growClaim", random.integer(1, 8), { random, firstIndex, untilMs });
}

function drawShortPods(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  return drawAnyTime("endPodDuringCall", random.integer(2, 6), { random, firstIndex, untilMs });
}

function drawLateObjects(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  return drawAnyTime("lateDriverObject", random.integer(1, 4), { random, firstIndex, untilMs });
}

interface Drawing {
  readonly random: SimRandom;
  readonly firstIndex: number;
  readonly untilMs: number;
}

function drawAnyTime(kind: StepKind, length: number, { random, firstIndex, untilMs }: Drawing): Step[] {
  return Array.from({ length }, (_, index) => {
    const atMs = random.integer(0, untilMs + 60_000);
    const seed = Math.floor(random.uniform() * 0x1_0000_0000);
    return { index: firstIndex + index, atMs, kind, seed };
  });
}

/** Pods use images while these are collected; or one does, and the disk fills up after a restart. */
function drawImageSteps(random: SimRandom, firstIndex: number, untilMs: number): Step[] {
  const startMs = random.integer(0, random.chance(0.5) ? 60_000 : untilMs);
  const steps: readonly (readonly [kind: StepKind, afterMs: number])[] = random.chance(0.5)
    ? [["collectWhileStarting", 0]]
    : [
        ["useImage", 0],
        ["killNode", 650_000],
        ["fillImages", 1_250_000],
        ["addPod", 1_600_000],
      ];
  return steps.map(([kind, afterMs], index) => {
    const seed = Math.floor(random.uniform() * 0x1_0000_0000);
    return { index: firstIndex + index, atMs: startMs + afterMs, kind, seed };
  });
}

function drawer<Kind extends string>(
  kinds: readonly Kind[],
  weightOf: Readonly<Record<Kind, number>>,
  random: SimRandom,
): () => Kind {
  const total = kinds.reduce((sum, kind) => sum + weightOf[kind], 0);
  return () => {
    let draw = random.uniform() * total;
    const kind = kinds.find((each) => (draw -= weightOf[each]) < 0) ?? kinds[0];
    if (kind === undefined) throw new Error("no kind of step to draw from");
    return kind;
  };
}
