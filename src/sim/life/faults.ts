import { type CriFaults, noFaults } from "../cri.ts";
import { type MachineFaults, soundMachine } from "../gate.ts";
import type { SimClock } from "../clock.ts";

/** Everything that may go on going wrong for a while. */
export interface Faults extends CriFaults, MachineFaults {
  /** Probability that a container ends within a moment of being started, told to stop, or run a hook in. */
  readonly worstMoments: number;
}

export const allIsWell: Faults = { ...noFaults, ...soundMachine, worstMoments: 0 };

/** What goes wrong at this moment: a base, and faults that begin and end. Of two at a time the later one counts. */
export class FaultWindows {
  readonly #clock: SimClock;
  readonly #open = new Set<Partial<Faults>>();
  readonly #onChange: (faults: Faults) => void;
  #base: Partial<Faults>;
  #current: Faults;
  /** Simulated ms at which the disk last was at fault. */
  #diskFaultEndedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: SimClock, base: Partial<Faults>, onChange: (faults: Faults) => void) {
    this.#clock = clock;
    this.#base = base;
    this.#onChange = onChange;
    this.#current = { ...allIsWell, ...base };
  }

  get current(): Faults {
    return this.#current;
  }

  get diskFaultEndedMs(): number {
    return this.#diskFaultEndedMs;
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
    this.#open.clear();
    this.#base = base;
    this.#update();
  }

  #update(): void {
    const { diskFull, diskErrors } = this.#current;
    if (diskFull || diskErrors > 0) this.#diskFaultEndedMs = this.#clock.nowMs;
    this.#current = Object.assign({}, allIsWell, this.#base, ...this.#open) as Faults;
    this.#onChange(this.#current);
  }
}
