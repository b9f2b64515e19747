import { fnv128a } from "../base/fnv.ts";
import type { Random } from "../ports/random.ts";

/** A seeded generator (SplitMix32-like mixing of a counter): small, fast, and the same on every machine. */
export class SimRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  uniform(): number {
    this.#state = (this.#state + 0x9e37_79b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0_aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a_2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000;
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.integer(0, 255));
  }

  /** Whole number from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.uniform() < probability;
  }

  pick<const T>(choices: readonly [T, ...T[]]): T {
    return choices[this.integer(0, choices.length - 1)] ?? choices[0];
  }

  /** One of them; undefined where there is none. */
  pickFrom<T>(choices: readonly T[]): T | undefined {
    return choices[this.integer(0, choices.length - 1)];
  }

  /** A generator of its own for what a name stands for in the life of a seed: nothing else is drawn otherwise for it. */
  static named(seed: number, name: string): SimRandom {
    return new SimRandom(Number(fnv128a(`${seed} ${name}`) & 0xffff_ffffn));
  }

  /** An independent generator: what one part of a scenario draws does not move what another draws. */
  fork(): SimRandom {
    return new SimRandom(Math.floor(this.uniform() * 0x1_0000_0000));
  }
}
