import type { Pod } from "../../api/pod.ts";
import { InvariantError, onBrokenInvariant } from "../../base/invariant.ts";
import type { DecisionRecorder } from "../../pods/decision-recorder.ts";
import { SimClock } from "../clock.ts";
import { diskDevice, rawDevice, stagingDriver } from "../csi/claimed-volumes.ts";
import { MemoryFiles } from "../files.ts";
import { SimRandom } from "../random.ts";
import { Referee } from "../rules/referee.ts";
import { enableSELinux } from "../selinux.ts";
import { RuntimeWorld } from "../runtime-world.ts";
import { drawWays } from "../runtime-ways.ts";
import { allIsWell, type Faults, FaultWindows } from "./faults.ts";
import { changeText, entryText, type Happening } from "./happening.ts";
import { drawConfig, type NodeManner } from "./node-config.ts";
import { SimNode, type SimEntry } from "./node.ts";
import { drawPlan, type Step, stepUid } from "./plan.ts";
import { drawImagePolicy, drawPinnedImages } from "./image-room.ts";
import { drawEvictions, drawFileSystems, isUnderPressure } from "./pressure-steps.ts";
import { hasQuotas } from "./quota-steps.ts";
import { drawPod, type PodWishes } from "./pods.ts";
import { errorText, type Problem, simulationGoesOn } from "./problem.ts";
import { driverRooms } from "./driver-rooms.ts";
import { machineRooms, prepareMachine } from "./sim-node-rooms.ts";
import { act } from "./steps.ts";
import {
  drawSubject,
  growsVolumes,
  hasDevices,
  hasDrivers,
  hasMachineRooms,
  hasSELinux,
  hasUnlockedDrivers,
  isInCluster,
} from "./subjects.ts";
import { clusterBase, clusterStage, drawCluster, tellReferee } from "./cluster-life.ts";
import type { SimCluster } from "./cluster.ts";
import type { Stage } from "./stage.ts";
import { faultsText, tellDesired, narratedStage } from "./telling.ts";
import { playWorstMoments } from "./worst-moments.ts";

/** The part of a seed's life to play. */
export interface LifeOptions {
  /** Indices of the steps to play; default: all. */
  readonly steps?: readonly number[];
  /** Features that pods lack ({@link podFeatures}). */
  readonly without?: readonly string[];
  readonly recorder?: DecisionRecorder;
  /** Called with every line of the life's timeline, in order. */
  readonly onHappening?: ((happening: Happening) => void) | undefined;
}

/** The result of a simulated life of a node and its pods. */
export interface LifeResult {
  readonly seed: number;
  /** The broken rule that ended it, and others broken at the same moment; empty if all went well. */
  readonly problems: readonly Problem[];
  readonly plan: readonly Step[];
  readonly entries: readonly SimEntry[];
  readonly simulatedMs: number;
  /** Number of steps, faults and actions, by name. */
  readonly coverage: Coverage;
}

export interface Coverage {
  readonly steps: ReadonlyMap<string, number>;
  readonly faults: ReadonlyMap<string, number>;
  readonly actions: ReadonlyMap<string, number>;
  /** Names of entries and codes of causes. */
  readonly names: ReadonlyMap<string, number>;
}

const sourceAnnotation = "kubernetes.io/config.source";

/** Time after the last fault until everything must be as desired: the longest back-off and a few inspections. */
const settleMs = 20 * 60_000;
/** How long it must then stay so. */
const restMs = 3 * 60_000;
const lookMs = 10_000;
/** Even then manifests may be read late, which must not disturb running pods. */
const lateManifestsMs = 20_000;
/** How long podwright is watched after a restart while all is well. */
const calmRestartMs = 90_000;

/**
 * One random life: pods are added, changed and removed, everything around them fails, podwright is killed and
 * restarted; then the faults end, and the desired and actual state have to match. Determined by the seed.
 */
export async function runLife(seed: number, options: LifeOptions = {}): Promise<LifeResult> {
  return await new Life(seed, options).run();
}

class Life {
  readonly #seed: number;
  readonly #plan: readonly Step[];
  readonly #random: SimRandom;
  readonly #clock = new SimClock(1_700_000_000_000);
  readonly #world: RuntimeWorld;
  readonly #node: SimNode;
  readonly #faults: FaultWindows;
  readonly #referee: Referee;
  readonly #cluster: SimCluster | undefined;
  readonly #wishes: PodWishes;
  readonly #onHappening: LifeOptions["onHappening"];
  /** The currently acting step. */
  #acting: number | undefined;
  readonly #isBroken = (): boolean => this.#referee.problems.length > 0;
  readonly #steps = new Map<string, number>();
  readonly #struck = new Map<string, number>();
  readonly #actions = new Map<string, number>();
  readonly #names = new Map<string, number>();

  constructor(seed: number, { steps, without = [], recorder, onHappening }: LifeOptions) {
    this.#seed = seed;
    this.#onHappening = onHappening;
    this.#plan = drawPlan(seed).filter(({ index }) => steps?.includes(index) ?? true);
    this.#random = new SimRandom(~seed);
    const subject = drawSubject(seed);
    const { always = new Set<string>(), isQuiet = false } = subject ?? {};
    this.#wishes = { without: new Set(without), always, seed };
    const files = new MemoryFiles(this.#clock.incarnation());
    this.#world = new RuntimeWorld(this.#clock, files, drawWays(seed));
    this.#world.images.add("busybox:latest");
    if (isUnderPressure(seed)) this.#world.images.add("stray:1");
    for (const image of drawPinnedImages(seed)) this.#world.images.pin(image);
    const strike = (fault: string): void => this.#strike(fault);
    const noise = drawNoise(this.#random, isQuiet);
    this.#cluster = isInCluster(seed) ? drawCluster(seed, this.#clock) : undefined;
    const base = this.#cluster === undefined ? noise : { ...noise, ...clusterBase(seed) };
    let known: Faults = { ...allIsWell, ...base };
    this.#faults = new FaultWindows(this.#clock, base, (faults) => {
      if (onHappening !== undefined) this.#tell("fault", faultsText(known, faults));
      known = faults;
      this.#node.setFaults();
    });
    this.#node = new SimNode({
      clock: this.#clock,
      world: this.#world,
      files,
      random: this.#random.fork(),
      config: drawConfig(this.#random.fork(), {
        ...subject,
        ...withDrivers(seed),
        protectsMemory: hasMachineRooms(seed),
        usesQuotas: hasQuotas(seed),
        hasSELinux: hasSELinux(seed),
      }),
      faults: this.#faults,
      onFault: strike,
      onEntry: (entry) => this.#judge(entry),
      recorder,
      evictions: drawEvictions(seed),
      imagePolicy: drawImagePolicy(seed),
      makeRooms: (parts) => [
        ...(hasMachineRooms(seed) ? machineRooms(this.#node, parts) : []),
        ...(hasDrivers(seed) ? driverRooms(this.#node, parts) : []),
      ],
      cluster: this.#cluster,
      onUpdate: (update) => tellReferee(this.#referee, this.#node, update),
      onRequest: (what) => count(this.#actions, what),
    });
    this.#node.resources.fileSystems = drawFileSystems(seed);
    // Before the rules, so that the offending event is reported.
    if (onHappening !== undefined) {
      this.#world.onChange((change) => this.#tell("runtime", changeText(change), { podUid: change.podUid }));
    }
    this.#referee = new Referee({ clock: this.#clock, world: this.#world, node: this.#node });
    playWorstMoments(this.#world, this.#random.fork(), () => this.#faults.current, strike);
  }

  async run(): Promise<LifeResult> {
    using _invariants = onBrokenInvariant((name, detail) => {
      this.#referee.broken(`invariant: ${name}`, detail);
      throw new InvariantError(name, detail);
    });
    try {
      await this.#play();
    } catch (error) {
      this.#referee.broken(simulationGoesOn, errorText(error));
    }
    for (const crash of this.#node.crashes) this.#referee.broken("podwright keeps running", crash);
    return {
      seed: this.#seed,
      problems: this.#referee.problems,
      plan: this.#plan,
      entries: this.#node.entries,
      simulatedMs: this.#clock.nowMs,
      coverage: { steps: this.#steps, faults: this.#struck, actions: this.#actions, names: this.#names },
    };
  }

  async #play(): Promise<void> {
    if (hasMachineRooms(this.#seed)) await this.#switchOn();
    if (hasDrivers(this.#seed)) this.#installDrivers();
    if (hasSELinux(this.#seed)) {
      await enableSELinux(this.#node);
      this.#cluster?.storage?.askForLabels(stagingDriver.name);
    }
    this.#node.quotas.isOn = hasQuotas(this.#seed);
    this.#node.start();
    for (const step of this.#plan) {
      await this.#clock.run(step.atMs, this.#isBroken);
      if (this.#isBroken()) break;
      count(this.#steps, step.kind);
      this.#act(step);
    }
    const rest = [
      async () => await this.#passOn(this.#random.integer(0, 20_000)),
      async () => await this.#calm(),
      async () => await this.#restart(),
      async () => await this.#end(),
    ];
    // Later violations may follow from the first broken rule.
    for (const part of rest) if (!this.#isBroken()) await part();
  }

  /** Restarts the machine a while after each time it is switched off. */
  async #switchOn(): Promise<void> {
    const { power } = this.#node;
    const random = SimRandom.named(this.#seed, "power");
    power.onOff((why) => {
      this.#tell("struck", `the machine goes off: ${why}`);
      power.bootAfter(random.integer(3000, 90_000));
    });
    await prepareMachine(this.#node, this.#node.files);
    await power.boot();
  }

  /** Drivers start some time after their machine. */
  #installDrivers(): void {
    const { power, drivers } = this.#node;
    const random = SimRandom.named(this.#seed, "power");
    const ways = { canMore: growsVolumes(this.#seed), hasNoLocks: hasUnlockedDrivers(this.#seed) };
    drivers.install(SimRandom.named(this.#seed, "answers of drivers"), false, ways);
    if (hasDevices(this.#seed)) this.#node.disks.install(SimRandom.named(this.#seed, "disks"), [diskDevice, rawDevice]);
    power.onOff(() => {
      const afterMs = random.integer(3000, 90_000);
      power.bootAfter(afterMs);
      for (const driver of drivers.all) {
        this.#clock.schedule("a driver to be started", afterMs + random.integer(0, 100_000), () => driver.start());
      }
    });
  }

  #act(step: Step): void {
    const { index, kind, seed } = step;
    if (this.#onHappening === undefined) return act(kind, this.#stage(step), new SimRandom(seed));
    this.#acting = index;
    this.#tell("step", `step ${index}: ${kind}`);
    let isTold = false;
    const tell = (text: string, podUid?: string): void => {
      isTold = true;
      this.#tell("deed", text, { podUid, step: index });
    };
    const [wanted, offsetMs] = [new Map(this.#node.desired), this.#clock.wallMs - this.#clock.nowMs];
    act(kind, narratedStage(this.#stage(step), tell), new SimRandom(seed));
    if (!isTold) tellDesired(wanted, this.#node.desired, tell);
    const jumpMs = this.#clock.wallMs - this.#clock.nowMs - offsetMs;
    if (jumpMs !== 0) tell(`the wall clock goes by ${jumpMs} ms`);
    this.#acting = undefined;
  }

  /** Faults end; then the desired state must be reached, and persist. */
  async #calm(): Promise<void> {
    const manifestDelayMaxMs = this.#random.chance(0.3) ? lateManifestsMs : 0;
    this.#faults.end({ noEvents: this.#random.chance(0.3), manifestDelayMaxMs });
    this.#node.resources.calm();
    this.#node.drivers.calm();
    this.#node.disks.calm();
    this.#node.quotas.isOn = hasQuotas(this.#seed);
    this.#cluster?.storage?.calm();
    const { power, firewall, cgroups } = this.#node;
    power.login.cancel();
    firewall.fails = false;
    cgroups.use("/kubepods", 0);
    if (power.isOff) await power.boot();
    if (this.#world.down) this.#world.comeUp(() => false);
    this.#world.images.fill(0, this.#clock.nowMs);
    if (this.#cluster?.server.down !== undefined) this.#cluster.server.comeUp(true);
    this.#node.killAfter(0, 0);
    await this.#passOn(lookMs);
    this.#node.start();
    const patientMs = this.#random.chance(0.05) ? 0 : settleMs;
    const endMs = this.#clock.nowMs + settleMs;
    while (this.#clock.nowMs < endMs && !this.#isBroken()) {
      await this.#passOn(lookMs);
      if (patientMs > 0 && (await this.#referee.disagreements()).length === 0) break;
    }
    await this.#passOn(restMs);
    await this.#referee.atRest(async () => await this.#passOn(lookMs));
  }

  async #restart(): Promise<void> {
    await this.#referee.restarted(
      async () => {
        if (this.#random.chance(0.5)) this.#node.kill();
        else await this.#node.stop(async () => await this.#passOn(500));
        await this.#passOn(this.#random.integer(0, 2000));
        this.#node.start();
        await this.#passOn(calmRestartMs);
      },
      async () => await this.#passOn(lookMs),
    );
  }

  async #end(): Promise<void> {
    const leaks = await this.#node.stop(async (forMs) => await this.#passOn(forMs));
    if (leaks.length > 0) this.#referee.broken("nothing leaks", `still waits after its end: ${leaks.join(", ")}`);
  }

  async #passOn(forMs: number): Promise<void> {
    await this.#clock.run(this.#clock.nowMs + forMs, this.#isBroken);
  }

  #stage({ index }: Step): Stage {
    const node = this.#node;
    const stage: Stage = {
      clock: this.#clock,
      world: this.#world,
      node,
      cluster: this.#cluster,
      faults: this.#faults,
      newPod: (random, name = `pod${index}`, number = 0) => {
        const pod = drawPod(name, stepUid(index, number), random, this.#wishes);
        return hasMachineRooms(this.#seed) ? fromSomewhere(pod, index + number) : pod;
      },
      want: (pod) => {
        this.#referee.wanted(pod);
        node.add(pod);
      },
      change: (pod) => {
        const { generation = 0 } = pod.metadata;
        const changed = { ...pod, metadata: { ...pod.metadata, generation: generation + 1 } };
        this.#referee.changed(changed);
        node.update(changed);
      },
      unwant: (uid, graceSeconds) => {
        const isEnding = node.isEnding(uid);
        node.remove(uid, graceSeconds);
        this.#referee.unwanted(uid, isEnding, graceSeconds);
      },
      tamper: (uid) => this.#referee.tampered(uid),
      strike: (fault) => this.#strike(fault),
    };
    return this.#cluster === undefined
      ? stage
      : clusterStage(stage, this.#cluster, { index, referee: this.#referee, wishes: this.#wishes });
  }

  #strike(fault: string): void {
    count(this.#struck, fault);
    this.#tell("struck", fault);
  }

  #tell(kind: Happening["kind"], text: string, more: Pick<Happening, "podUid" | "step"> = {}): void {
    const step = kind === "journal" ? undefined : this.#acting;
    this.#onHappening?.({ atMs: this.#clock.nowMs, kind, text, ...(step !== undefined && { step }), ...more });
  }

  #judge(entry: SimEntry): void {
    if (this.#onHappening !== undefined) this.#tell("journal", entryText(entry), { podUid: entry.pod?.uid });
    if (entry.kind === "action" || entry.kind === "decision") count(this.#actions, entry.what);
    count(this.#names, entry.what);
    for (let { cause } = entry; cause !== undefined; cause = cause.because) count(this.#names, cause.code);
    this.#referee.entry(entry);
  }
}

/** A shutdown ends pods of the API server permanently, and static ones until the machine is back. */
function fromSomewhere(pod: Pod, number: number): Pod {
  const annotations = { ...pod.metadata.annotations, [sourceAnnotation]: number % 2 === 0 ? "api" : "file" };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

/** With drivers, pods more often wait for resources, and are synced often enough to republish volumes. */
function withDrivers(seed: number): NodeManner {
  if (!hasDrivers(seed)) return {};
  return { isSeldomSynced: false, ...(SimRandom.named(seed, "crowded").chance(0.4) && { isTight: true }) };
}

/** The permanent faults of this life. */
function drawNoise(random: SimRandom, isQuiet: boolean): Partial<Faults> {
  const quiet = random.chance(0.4) || isQuiet;
  const upTo = (most: number): number => (quiet ? 0 : random.uniform() * most);
  return {
    failBefore: upTo(0.05),
    failAfter: upTo(0.05),
    eventLost: upTo(0.5),
    eventTwice: upTo(0.3),
    eventDelayMaxMs: quiet ? allIsWell.eventDelayMaxMs : random.integer(1, 5000),
    noEvents: random.chance(0.3),
  };
}

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}
