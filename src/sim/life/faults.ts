import { type ApiFaults, soundApi } from "../api-server/faults.ts";
import { type CriFaults, noFaults } from "../cri-faults.ts";
import { type MachineFaults, soundMachine } from "../gate.ts";
import type { SimClock } from "../clock.ts";

/** All lasting faults. */
export interface Faults extends CriFaults, MachineFaults, ApiFaults {
  /** Probability that a container exits just after it was started, told to stop, or given a hook. */
  readonly worstMoments: number;
  /** Maximum delay of reading manifests, at a start and, in a cluster, also after changes. */
  readonly manifestDelayMaxMs: number;
}

export const allIsWell: Faults = { ...noFaults, ...soundMachine, ...soundApi, worstMoments: 0, manifestDelayMaxMs: 0 };

/** The current faults: a base, and windows of additional ones. The later of two overlapping windows counts. */
export class FaultWindows {
  readonly #clock: SimClock;
  readonly #open = new Set<Partial<Faults>>();
  readonly #onChange: (faults: Faults) => void;
  #base: Partial<Faults>;
  #current: Faults;
  /** Simulated ms of the last disk fault. */
  #diskFaultEndedMs = Number.NEGATIVE_INFINITY;
  #removalFaultEndedMs = Number.NEGATIVE_INFINITY;
  #hasEnded = false;
  #soundSinceMs = 0;
  #obedientSinceMs = 0;

  constructor(clock: SimClock, base: Partial<Faults>, onChange: (faults: Faults) => void) {
    this.#clock = clock;
    this.#base = base;
    this.#onChange = onChange;
    this.#current = { ...allIsWell, ...base };
  }

  /** Whether {@link end} was called: no further steps affect the node. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get current(): Faults {
    return this.#current;
  }

  /** Simulated ms of the last disk fault; infinity during one. */
  get diskFaultMs(): number {
    const { diskFull, diskErrors, diskDelayMaxMs } = this.#current;
    return diskFull || diskErrors + diskDelayMaxMs > 0 ? Number.POSITIVE_INFINITY : this.#diskFaultEndedMs;
  }

  /** Simulated ms of the last fault in removals of images; infinity during one. */
  get removalFaultMs(): number {
    return failsToRemove(this.#current) ? Number.POSITIVE_INFINITY : this.#removalFaultEndedMs;
  }

  get diskFaultEndedMs(): number {
    return this.#diskFaultEndedMs;
  }

  /**
   * Simulated ms since when calls, the disk and the machine have worked, possibly slowly; infinity while they do not.
   */
  get soundSinceMs(): number {
    return isSound(this.#current) ? this.#soundSinceMs : Number.POSITIVE_INFINITY;
  }

  /** Like {@link soundSinceMs}, but the disk may be slow. */
  get obedientSinceMs(): number {
    return isObedient(this.#current) ? this.#obedientSinceMs : Number.POSITIVE_INFINITY;
  }

  /** Begins a fault for this time. */
  begin(fault: Partial<Faults>, forMs: number): void {
    this.#open.add(fault);
    this.#update();
    this.#clock.schedule("the end of a fault", forMs, () => {
      if (this.#open.delete(fault)) this.#update();
    });
  }

  /** Ends all faults except those in `base`. */
  end(base: Partial<Faults>): void {
    this.#hasEnded = true;
    this.#open.clear();
    this.#base = base;
    this.#update();
  }

  #update(): void {
    const { diskFull, diskErrors } = this.#current;
    if (diskFull || diskErrors > 0) this.#diskFaultEndedMs = this.#clock.nowMs;
    if (failsToRemove(this.#current)) this.#removalFaultEndedMs = this.#clock.nowMs;
    if (!isSound(this.#current)) this.#soundSinceMs = this.#clock.nowMs;
    if (!isObedient(this.#current)) this.#obedientSinceMs = this.#clock.nowMs;
    this.#current = Object.assign({}, allIsWell, this.#base, ...this.#open) as Faults;
    this.#onChange(this.#current);
  }
}

function failsToRemove({ removalFails, removalLies }: Faults): boolean {
  return removalFails + removalLies > 0;
}

function isSound(faults: Faults): boolean {
  return isObedient(faults) && faults.diskDelayMaxMs === 0;
}

function isObedient(faults: Faults): boolean {
  const { failBefore, failAfter, stopFails, hang, noAddress, noNetwork, diskFull, diskErrors, machineErrors } = faults;
  const chances = failBefore + failAfter + stopFails + hang + noAddress + diskErrors + machineErrors;
  return chances === 0 && !noNetwork && !diskFull;
}
