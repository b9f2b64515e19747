/** Randomness. Seeded in the simulator, the operating system's in production. */
export interface Random {
  /** Uniform in [0, 1). */
  uniform(): number;
  /** `count` random bytes. */
  bytes(count: number): Uint8Array;
}
