import { fnv128a } from "../base/fnv.ts";
import type { Random } from "../ports/random.ts";

/** A seeded generator (SplitMix32-like mixing of a counter): small, fast, and identical on every machine. */
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

  /** Integer from `low` to `high`, inclusive. */
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

  /** One of them; undefined if there are none. */
  pickFrom<T>(choices: readonly T[]): T | undefined {
    return choices[this.integer(0, choices.length - 1)];
  }

  /** A generator for a named purpose in a seed's life: it does not affect other draws. */
  static named(seed: number, name: string): SimRandom {
    return new SimRandom(Number(fnv128a(`${seed} ${name}`) & 0xffff_ffffn));
  }

  /** An independent generator: the draws of one part of a scenario do not affect another's. */
  fork(): SimRandom {
    return new SimRandom(Math.floor(this.uniform() * 0x1_0000_0000));
  }
}
