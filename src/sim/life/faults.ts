import { type ApiFaults, soundApi } from "../api-server/faults.ts";
import { type CriFaults, noFaults } from "../cri-faults.ts";
import { type MachineFaults, soundMachine } from "../gate.ts";
import type { SimClock } from "../clock.ts";

/** Everything that may go on going wrong for a while. */
export interface Faults extends CriFaults, MachineFaults, ApiFaults {
  /** Probability that a container ends within a moment of being started, told to stop, or run a hook in. */
  readonly worstMoments: number;
  /** Manifests are read up to so much later, at a start and in a cluster also when they change. */
  readonly manifestDelayMaxMs: number;
}

export const allIsWell: Faults = { ...noFaults, ...soundMachine, ...soundApi, worstMoments: 0, manifestDelayMaxMs: 0 };

/** What goes wrong at this moment: a base, and faults that begin and end. Of two at a time the later one counts. */
export class FaultWindows {
  readonly #clock: SimClock;
  readonly #open = new Set<Partial<Faults>>();
  readonly #onChange: (faults: Faults) => void;
  #base: Partial<Faults>;
  #current: Faults;
  /** Simulated ms at which the disk last was at fault. */
  #diskFaultEndedMs = Number.NEGATIVE_INFINITY;
  #hasEnded = false;
  #soundSinceMs = 0;
  #obedientSinceMs = 0;

  constructor(clock: SimClock, base: Partial<Faults>, onChange: (faults: Faults) => void) {
    this.#clock = clock;
    this.#base = base;
    this.#onChange = onChange;
    this.#current = { ...allIsWell, ...base };
  }

  /** True once {@link end} was called: nothing is done to the node any more either. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get current(): Faults {
    return this.#current;
  }

  /** Simulated ms at which the disk last was at fault; infinity while it is. */
  get diskFaultMs(): number {
    const { diskFull, diskErrors, diskDelayMaxMs } = this.#current;
    return diskFull || diskErrors + diskDelayMaxMs > 0 ? Number.POSITIVE_INFINITY : this.#diskFaultEndedMs;
  }

  get diskFaultEndedMs(): number {
    return this.#diskFaultEndedMs;
  }

  /** Simulated ms since which calls, the disk and the machine do what they are asked, if slowly; infinity while not. */
  get soundSinceMs(): number {
    return isSound(this.#current) ? this.#soundSinceMs : Number.POSITIVE_INFINITY;
  }

  /** Like {@link soundSinceMs}, but the disk may be slow. */
  get obedientSinceMs(): number {
    return isObedient(this.#current) ? this.#obedientSinceMs : Number.POSITIVE_INFINITY;
  }

  /** Something goes wrong from now on, for so long. */
  begin(fault: Partial<Faults>, forMs: number): void {
    this.#open.add(fault);
    this.#update();
    this.#clock.schedule("the end of a fault", forMs, () => {
      if (this.#open.delete(fault)) this.#update();
    });
  }

  /** Nothing goes wrong any more, except what `base` says. */
  end(base: Partial<Faults>): void {
    this.#hasEnded = true;
    this.#open.clear();
    this.#base = base;
    this.#update();
  }

  #update(): void {
    const { diskFull, diskErrors } = this.#current;
    if (diskFull || diskErrors > 0) this.#diskFaultEndedMs = this.#clock.nowMs;
    if (!isSound(this.#current)) this.#soundSinceMs = this.#clock.nowMs;
    if (!isObedient(this.#current)) this.#obedientSinceMs = this.#clock.nowMs;
    this.#current = Object.assign({}, allIsWell, this.#base, ...this.#open) as Faults;
    this.#onChange(this.#current);
  }
}

function isSound(faults: Faults): boolean {
  return isObedient(faults) && faults.diskDelayMaxMs === 0;
}

function isObedient(faults: Faults): boolean {
  const { failBefore, failAfter, stopFails, hang, noAddress, noNetwork, diskFull, diskErrors, machineErrors } = faults;
  const chances = failBefore + failAfter + stopFails + hang + noAddress + diskErrors + machineErrors;
  return chances === 0 && !noNetwork && !diskFull;
}
