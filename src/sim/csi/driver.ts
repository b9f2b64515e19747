import { Emitter } from "../../base/emitter.ts";
import { RpcError } from "../../ports/rpc.ts";
import type { SimClock } from "../clock.ts";
import type { SimRandom } from "../random.ts";
import { drawFate, type DriverFaults, type Fate, finalCodes, soundDriver, uncertainCodes } from "./driver-faults.ts";
import type { ArrivedCall, SimSockets } from "./sockets.ts";
import type { DriverKind } from "./driver-kind.ts";
import { type CallAbout, type DriverVolumes, volumeOf } from "./volumes.ts";

/** A call of a driver: when it arrived, and when it was carried out, with or without a response. */
export interface DriverCall extends CallAbout {
  readonly driver: string;
  readonly when: "begins" | "ends";
}

const root = "/var/lib/kubelet";
/** Latest time at which an abandoned call is carried out, ms. */
const latestMs = 200_000;
/** The same of a driver without locks: the kubelet waits so long for it, and then makes the next. */
const latestUnlockedMs = 110_000;

const capability = (type: number) => ({ type: { case: "rpc", value: { type } } });
/** STAGE_UNSTAGE_VOLUME, GET_VOLUME_STATS and EXPAND_VOLUME. */
const [stages, measures, expands] = [capability(1), capability(2), capability(3)];

type Request = Readonly<Record<string, unknown>>;

interface Operation {
  readonly about: CallAbout;
  readonly work: () => object;
}

interface OperationUnderWay extends Operation {
  readonly caller: object;
  readonly call: ArrivedCall;
}

/**
 * A CSI driver of the simulated machine: a process with two sockets. Its mounts outlive it. It runs one operation per
 * volume at a time and rejects others with `Aborted`, as the specification permits. One without locks does so only with
 * operations that an earlier run of podwright has left, which the next cannot know of. A call that has arrived is carried
 * out even if its caller has abandoned it.
 */
export class SimDriver {
  readonly kind: DriverKind;
  faults: DriverFaults = soundDriver;
  /** Its permanent faults. */
  usual: DriverFaults = soundDriver;
  readonly #clock: SimClock;
  readonly #random: SimRandom;
  readonly #sockets: SimSockets;
  readonly #volumes: DriverVolumes;
  readonly #calls = new Emitter<DriverCall>();
  readonly #ends = new Set<() => void>();
  readonly #underWay = new Set<OperationUnderWay>();
  /** Number of starts of its process. */
  #starts = 0;
  #isUp = false;
  /** Number of its upgrades. */
  #version = 0;

  constructor(
    kind: DriverKind,
    parts: {
      readonly clock: SimClock;
      readonly random: SimRandom;
      readonly sockets: SimSockets;
      readonly volumes: DriverVolumes;
    },
  ) {
    this.kind = kind;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#sockets = parts.sockets;
    this.#volumes = parts.volumes;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  get endpoint(): string {
    return `${root}/plugins/${this.kind.name}/csi.sock`;
  }

  get registrar(): string {
    return `${root}/plugins_registry/${this.kind.name}-reg.sock`;
  }

  /** Its answer to NodeGetInfo. A label of an earlier version stays on the Node, so each has a key of its own. */
  get place(): { readonly nodeId: string; readonly topology: Readonly<Record<string, string>> } {
    const { name } = this.kind;
    if (this.#version === 0) return { nodeId: `sim-${name}`, topology: {} };
    return { nodeId: `sim-${name}-${this.#version}`, topology: { [`topology.${name}/v${this.#version % 2}`]: "here" } };
  }

  /** From its next registration on, the node has another ID and other topology keys for it. */
  upgrade(): void {
    this.#version++;
  }

  /** Whether an operation on the volume is in progress. */
  isBusy(volume: string): boolean {
    return [...this.#underWay].some(({ about }) => about.volume === volume);
  }

  onCall(listener: (call: DriverCall) => void): Disposable {
    return this.#calls.on(listener);
  }

  /** Starts its process, which registers. */
  start(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    this.#starts++;
    this.#sockets.listen(this.endpoint, {
      serve: (method, request, caller, call) => this.#serve(method, request, caller, call),
      onEnd: this.#onEnd,
    });
    this.register();
  }

  /** Ends its process; operations in progress are carried out, or not. */
  stop(leavesSockets: boolean): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    this.#sockets.close(this.endpoint, leavesSockets);
    this.#sockets.close(this.registrar, leavesSockets);
    for (const operation of this.#underWay) {
      if (this.#random.chance(0.5)) attempt(operation.work);
      this.#ended(operation);
    }
    const ends = [...this.#ends];
    this.#ends.clear();
    for (const cut of ends) cut();
  }

  /** Creates or replaces its registrar's socket. */
  register(): void {
    if (!this.#isUp) return;
    this.#sockets.listen(this.registrar, { serve: (method) => this.#introduce(method), onEnd: this.#onEnd });
  }

  /** The driver keeps running, unknown to the kubelet. */
  unregister(): void {
    if (this.#isUp) this.#sockets.close(this.registrar, false);
  }

  readonly #onEnd = (cut: () => void): Disposable => {
    this.#ends.add(cut);
    return { [Symbol.dispose]: () => void this.#ends.delete(cut) };
  };

  async #introduce(method: string): Promise<object> {
    await this.#pass(this.#random.uniform() * 20);
    if (method !== "getInfo") return {};
    const { name } = this.kind;
    return { type: "CSIPlugin", name, endpoint: this.endpoint, supportedVersions: ["1.0.0"] };
  }

  async #serve(method: string, request: Request, caller: object, call: ArrivedCall): Promise<object> {
    const starts = this.#starts;
    const told = this.#aboutItself(method);
    if (told !== undefined) {
      if (this.#random.chance(this.faults.hangs)) return await new Promise(() => {});
      await this.#pass(this.#random.uniform() * 20);
      return told;
    }
    if (method === "nodeGetVolumeStats") return await this.#measure(request);
    const volume = volumeOf(request);
    const work = this.#volumes.operation(this.kind, method, request);
    if (work === undefined) throw new RpcError("Unimplemented", `unknown method ${method}`, { isStatus: true });
    this.#judgeOverlap(work.about, caller);
    if (this.#isLocked(volume, caller)) {
      throw new RpcError("Aborted", `an operation on ${volume} is pending`, { isStatus: true });
    }
    const operation = { ...work, caller, call };
    this.#underWay.add(operation);
    this.#calls.emit({ ...work.about, driver: this.kind.name, when: "begins" });
    const { hasNoLocks = false } = this.kind;
    const drawn = drawFate(this.#random, this.faults);
    // An operation that comes to no end would be completed beside others when the process ends.
    const fate = drawn === "never" && hasNoLocks ? "late" : drawn;
    const lateMs = hasNoLocks ? latestUnlockedMs : latestMs;
    await this.#pass(this.#random.uniform() * (fate === "late" ? lateMs : this.faults.longestMs));
    // Only its ended process could carry it out.
    if (fate === "never" || starts !== this.#starts || !this.#isUp) return await new Promise(() => {});
    return await this.#carryOut(operation, fate);
  }

  /** An earlier run's call may be in progress, and one that was given up: nobody can wait for the end of these. */
  #judgeOverlap({ method, volume }: CallAbout, caller: object): void {
    const other = [...this.#underWay].find(
      (each) => each.about.volume === volume && each.caller === caller && !each.call.isOver,
    );
    if (other === undefined) return;
    this.#volumes.onViolation("a volume has one call at a time", `${method} of ${volume} during ${other.about.method}`);
  }

  #isLocked(volume: string, caller: object): boolean {
    const others = [...this.#underWay].filter(({ about }) => about.volume === volume);
    return others.some((other) => this.kind.hasNoLocks !== true || other.caller !== caller);
  }

  #aboutItself(method: string): object | undefined {
    if (method === "nodeGetInfo") {
      const { nodeId, topology } = this.place;
      return { nodeId, maxVolumesPerNode: 0n, accessibleTopology: { segments: topology } };
    }
    if (method !== "nodeGetCapabilities") return undefined;
    return { capabilities: [...(this.kind.stages ? [stages] : []), ...(this.kind.canMore ? [measures, expands] : [])] };
  }

  /** Beside other calls. */
  async #measure(request: Request): Promise<object> {
    if (this.#random.chance(this.faults.hangs)) return await new Promise(() => {});
    await this.#pass(this.#random.uniform() * 20);
    if (!this.#volumes.isMounted(volumeOf(request))) throw refusal("NotFound");
    return { usage: [{ available: 3n << 28n, total: 1n << 30n, used: 1n << 28n, unit: 1 }] };
  }

  async #carryOut(operation: OperationUnderWay, fate: Fate): Promise<object> {
    const { about, work } = operation;
    try {
      if (fate === "refused") throw refusal(this.#random.pick(finalCodes));
      if (fate === "doubted") throw refusal(this.#random.pick(uncertainCodes));
      if (fate === "twice") work();
      const done = work();
      // What it has published shows in the table of mounts.
      const liesOf = about.method === "publish" ? ([...uncertainCodes, ...finalCodes] as const) : uncertainCodes;
      if (fate === "lied") throw refusal(this.#random.pick(liesOf));
      return done;
    } finally {
      this.#ended(operation);
    }
  }

  #ended(operation: OperationUnderWay): void {
    this.#underWay.delete(operation);
    this.#calls.emit({ ...operation.about, driver: this.kind.name, when: "ends" });
  }

  async #pass(forMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#clock.schedule(`an answer of ${this.kind.name}`, forMs, resolve);
    await promise;
  }
}

function refusal(code: RpcError["code"]): RpcError {
  return new RpcError(code, "a simulated failure", { isStatus: true });
}

/** Errors have no receiver: the caller is gone. */
function attempt(work: () => object): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
  }
}
